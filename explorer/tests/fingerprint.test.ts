/** The run of the page is the run of the program: the same fingerprint of everything measured, for each scenario and three seeds. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { engine, files, ROOT, scenario } from "./engine.ts";

const SEEDS = ["1", "2", "18446744073709551615"];
const NATIVE = process.env.PERHOP_FINGERPRINT;

test("WebAssembly and native code give the same runs", {
  skip: NATIVE ? false : "PERHOP_FINGERPRINT names no native program",
}, async () => {
  const one = await engine();
  for (const id of files) {
    const native = spawnSync(NATIVE ?? "", SEEDS, { cwd: ROOT, input: scenario(id), encoding: "utf8" });
    assert.equal(native.status, 0, native.stderr);
    const here = SEEDS.map((seed) => one.ask<string>({ do: "fingerprint", toml: scenario(id), seed }).value);
    assert.deepEqual(native.stdout.trim().split("\n"), here, id);
    assert.equal(new Set(here).size, SEEDS.length, `${id}: each seed is another run`);
  }
});

test("a run that is stepped and looked at ends as an unbroken one", async () => {
  const toml = scenario("red");
  const outcome = async (look: boolean) => {
    const one = await engine();
    one.ask({ do: "open", toml, seed: "1" });
    for (let time = 1; look && time < 60; time++) {
      one.ask({ do: "advance", untilS: time });
      one.ask({ do: "step", link: null });
      one.ask({ do: "frame" });
    }
    return one.ask<string>({ do: "export", kind: "outcome", which: 0 }).value;
  };
  assert.equal(await outcome(true), await outcome(false));
});
