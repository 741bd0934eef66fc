/** The module as the tests of Node load it: where `make explorer` has put it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Engine } from "../src/engine/module.ts";
import type { GalleryEntry } from "../src/protocol.ts";

/** The repository, seen from the bundled tests. */
export const ROOT = process.env.PERHOP_ROOT ?? join(dirname(fileURLToPath(import.meta.url)), "../..");
export const WASM = process.env.PERHOP_WASM ?? join(ROOT, "python/perhop/explorer/perhop_explorer.wasm");
const GALLERY = join(ROOT, "explorer/gallery");

let compiled: Promise<WebAssembly.Module> | undefined;

/** A fresh instance of the engine. */
export async function engine(): Promise<Engine> {
  if (!existsSync(WASM)) throw new Error(`${WASM} is missing; \`make explorer\` builds it`);
  compiled ??= WebAssembly.compile(readFileSync(WASM));
  return Engine.of(await compiled);
}

export function scenario(id: string): string {
  return readFileSync(join(GALLERY, `${id}.toml`), "utf8");
}

export const entries = JSON.parse(readFileSync(join(GALLERY, "index.json"), "utf8")) as GalleryEntry[];
export const files = readdirSync(GALLERY)
  .filter((name) => name.endsWith(".toml"))
  .map((name) => name.slice(0, -5));
