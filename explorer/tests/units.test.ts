/** Measures of whole runs have the units of the catalogue, and a measure that does not apply has no value. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../src/engine/seeds.ts";
import type { Control } from "../src/protocol.ts";
import { FALL, type Falling, launch, whereabouts } from "../src/ui/falling.ts";
import { measure } from "../src/ui/format.ts";
import { paired } from "../src/ui/paired.ts";
import { rangeOf } from "../src/ui/range.ts";
import { engine } from "./engine.ts";

const LINK = `duration = "8s"
links.link = { from = "a", to = "b", rate = "5Mbps", delay = "5ms", queue = { aqm = "drop-tail", limit = "50p" } }
`;

/** Users of an application. */
function users(model: string): string {
  const transport = model === "game" ? "" : ', transport = { tcp = "linux" }';
  return `application = { model = "${model}" }${transport}`;
}

/** What the table shows of these users. */
async function shown(flow: string): Promise<Map<string, string>> {
  const one = await engine();
  const toml = `${LINK}flows = [{ name = "f", from = "a", to = "b", ${flow} }]\n`;
  const rows = one.ask<Row[]>({ do: "measure", toml, seed: "1" }).value;
  return new Map(
    rows.map(([path, unit, value]) => {
      const { name, unit: word, text } = measure(path, unit);
      return [word ? `${name}, ${word}` : name, value === null ? "–" : text(value)];
    }),
  );
}

test("measures of applications have their units", async () => {
  const units = {
    web: ["f.page mean, ms", "f.page p50, ms", "f.page p95, ms", "f.page mean, B", "f.pages"],
    video: ["f.quality, Mbit/s", "f.startup, ms", "f.stall seconds per hour, s/h", "f.stalls", "f.qoe"],
    "request-response": ["f.response mean, ms", "f.response p50, ms", "f.response p99, ms", "f.responses"],
    game: ["f.down p99, ms", "f.down late, %", "f.up p99, ms", "f.up late, %"],
  };
  for (const [model, heads] of Object.entries(units)) {
    const found = await shown(users(model));
    for (const head of heads) assert.ok(found.has(head), `${head} of\n${[...found.keys()].join("\n")}`);
  }
});

test("every measure has a unit, or is a ratio or a count", async () => {
  const bare = /(index|slowdown|unfinished\w*|pages|chunks|stalls|switches|qoe|not started|responses|unfinished \w+)$/;
  for (const flow of [
    users("web"),
    users("video"),
    users("request-response"),
    users("game"),
    'transport = { tcp = "linux" }',
    'transport = { udp = "cbr", rate = "1Mbps" }',
  ]) {
    for (const head of (await shown(flow)).keys()) assert.match(head, new RegExp(`, .+$|${bare.source}`), flow);
  }
});

test("retransmissions of UDP have no value, those of TCP are a share", async () => {
  const head = "f.retransmission ratio, %";
  assert.equal((await shown('transport = { udp = "cbr", rate = "1Mbps" }')).get(head), "–");
  assert.match((await shown('transport = { tcp = "newreno" }')).get(head) ?? "", /^\d/);
});

test("differences are over the seeds in which both have a value", () => {
  assert.equal(paired([1, null, 3], [2, 5, null]), null, "one pair");
  assert.deepEqual(paired([1, null, 3], [2, 5, 4]), { mean: 1, half: 0, verdict: "higher" });
});

test("a slider's range stays while it is held and while the value lies inside", () => {
  // The engine's range of a count: up to four times its value.
  const count = (value: number): Control =>
    ({ value, unit: "", min: 1, max: value * 4, step: 1, log: false, integer: true }) as Control;
  let range = rangeOf(count(10), null, false);
  assert.equal(range.max, 40);
  for (const value of [12, 30, 40]) range = rangeOf(count(value), range, true);
  assert.equal(range.max, 40);
  assert.equal(rangeOf(count(30), range, false).max, 40);
  assert.equal(rangeOf(count(40), range, false).max, 160);
  assert.equal(rangeOf(count(100), range, false).max, 400);
  assert.equal(rangeOf({ ...count(30), unit: "p" }, range, false).max, 120);
});

test("falling drops cover none another", () => {
  const falling: Falling[] = [];
  for (let picture = 0; picture < 60; picture++) {
    for (let id = 60 * picture; id < 60 * (picture + 1); id++)
      launch(falling, { id, link: 0, isMark: id % 3 === 0 }, 130, picture * 16);
    const now = picture * 16;
    const seen = falling.filter(({ born }) => born <= now && now - born <= FALL).map((one) => whereabouts(one, now));
    for (const [i, a] of seen.entries())
      for (const b of seen.slice(i + 1)) assert.ok(Math.hypot(a.along - b.along, a.away - b.away) > 8);
  }
  assert.ok(falling.length > 20 && falling.length < 120, String(falling.length));
});
