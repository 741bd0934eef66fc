// Builds the page and its worker into the folder that `perhop explore` serves: `node build.mjs [--out DIR] [--watch]`.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({ options: { out: { type: "string" }, watch: { type: "boolean" } } });
const out = values.out ?? join(here, "dist");

mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) cpSync(join(here, "src", name), join(out, name));
rmSync(join(out, "gallery"), { recursive: true, force: true });
cpSync(join(here, "gallery"), join(out, "gallery"), { recursive: true });

const options = {
  absWorkingDir: here,
  entryPoints: { page: "src/page.tsx", worker: "src/engine/worker.ts" },
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
};
if (values.watch) {
  await (await esbuild.context(options)).watch();
} else {
  await esbuild.build(options);
  let bytes = 0;
  for (const name of readdirSync(out, { recursive: true })) {
    const path = join(out, name);
    if (statSync(path).isFile()) bytes += gzipSync(readFileSync(path)).length;
  }
  console.log(`${out}: ${(bytes / 1e6).toFixed(2)} MB compressed`);
  if (!existsSync(join(out, "perhop_explorer.wasm")))
    console.log("the engine is missing: make explorer builds it, too");
}
