// node tools/run_wasm.mjs MODULE.wasm FUNCTION SEED
// Calls an exported function u64 -> u64 of a module that gets no imports, and prints its value.
import { readFile } from "node:fs/promises";

const [path, name, seed] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(await readFile(path), {});
const value = instance.exports[name](BigInt.asIntN(64, BigInt(seed)));
console.log(BigInt.asUintN(64, value).toString());
