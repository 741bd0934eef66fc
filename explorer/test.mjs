// Bundles the tests of the engine for Node, which does not read TypeScript, and runs them: `node test.mjs [NAME…]`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const names = process.argv.slice(2);
const tests = readdirSync(join(here, "tests")).filter(
  (name) => name.endsWith(".test.ts") && (names.length === 0 || names.includes(name.slice(0, -".test.ts".length))),
);
const out = mkdtempSync(join(tmpdir(), "perhop-explorer-tests-"));
try {
  await esbuild.build({
    absWorkingDir: here,
    entryPoints: tests.map((name) => join("tests", name)),
    outdir: out,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  const built = tests.map((name) => join(out, `${basename(name, ".ts")}.mjs`));
  const run = spawnSync(process.execPath, ["--test", ...built], {
    stdio: "inherit",
    env: { ...process.env, PERHOP_ROOT: dirname(here) },
  });
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
