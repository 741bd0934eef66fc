/** Bounds: what the engine derives, what becomes of a worker that fails, and how the chart of waits shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Bounding } from "../src/engine/bounding.ts";
import { frameOf, type Header } from "../src/engine/frames.ts";
import type { Runner } from "../src/engine/seeds.ts";
import type { Bounds, DelayBound, Histogram, Opened } from "../src/protocol.ts";
import { delays, type WaitsOf } from "../src/ui/delays.ts";
import { atMost } from "../src/ui/format.ts";
import { cumulative } from "../src/ui/history.ts";
import { LIGHT } from "../src/ui/palette.ts";
import { drawUprights } from "../src/ui/uprights.ts";
import { engine } from "./engine.ts";

const [BLUE = "", ORANGE = ""] = LIGHT.series;

/** Voice before data, which comes in bursts behind a policer. */
const PRIORITY = `duration = "3s"
[links.line]
from = "a"
to = "b"
rate = "10Mbps"
delay = "5ms"
queue = { scheduler = "priority", queues = [
  { name = "voice", match = { dscp = 46 }, rule = { aqm = "drop-tail", limit = "100p" } },
  { name = "data", rule = { aqm = "drop-tail", limit = "100p" } },
] }
[[flows]]
name = "calls"
count = 10
from = "a"
to = "b"
dscp = 46
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }
[[flows]]
name = "bulk"
from = "a"
to = "b"
transport = { tcp = "newreno" }
`;

test("no packet of a run waits longer than the bound of its class", async () => {
  const one = await engine();
  const opened = one.ask<Opened>({ do: "open", toml: PRIORITY, seed: "1" }).value;
  one.ask({ do: "advance", untilS: 3 });
  const { value, numbers } = one.ask<Header>({ do: "frame" });
  const [run] = frameOf(value, numbers, [opened.columns.length], 0).runs;
  const { links, flows, failure } = one.ask<Bounds>({ do: "bounds", toml: PRIORITY }).value;
  assert.equal(failure, "");
  const histograms = run?.histograms ?? [];
  assert.deepEqual(
    histograms.map((each) => each.class),
    [null, "voice", "data"],
  );
  const [line] = links;
  const packets = histograms.map(({ counts }) => counts.reduce((sum, count) => sum + count, 0));
  assert.equal(packets[0], (packets[1] ?? 0) + (packets[2] ?? 0));
  for (const { class: name, longestS } of histograms) {
    const delay = name === null ? line?.delay : line?.classes.find((each) => each.name === name)?.delay;
    assert.ok(delay && "at_most_s" in delay, String(name));
    const longest = Math.max(...longestS);
    assert.ok(longest > 0 && longest <= delay.at_most_s, `${name}: ${longest} of ${delay.at_most_s}`);
  }
  assert.deepEqual(
    flows.map(({ name }) => name),
    ["calls", "bulk"],
  );
});

const FOUND: Bounds = { links: [], flows: [], failure: "" };

test("a derivation that fails or takes too long ends its worker, and the next has another", async () => {
  const closed: number[] = [];
  const answers = [
    () => Promise.reject(new Error("unreachable executed")),
    () => new Promise(() => {}),
    () => Promise.resolve(FOUND),
    () => Promise.resolve(FOUND),
  ];
  let started = 0;
  const start = (): Runner => {
    const number = started++;
    return { ask: () => answers.shift()?.() as Promise<never>, close: () => closed.push(number) };
  };
  const bounding = new Bounding(start, 20);
  const found = await Promise.all([1, 2, 3, 4].map(() => bounding.derive("")));
  assert.match(found[0]?.failure ?? "", /perhop is at fault/);
  assert.match(found[1]?.failure ?? "", /longer than 0.02 s here; `perhop bound` derives them/);
  assert.deepEqual(found.slice(2), [FOUND, FOUND]);
  assert.deepEqual({ started, closed }, { started: 3, closed: [0, 1] });
});

/** Packets that waited so long, in ms: each in a bucket of its own. */
function histogram(name: string | null, waitsMs: number[]): Histogram {
  const seconds = Float64Array.from(waitsMs, (wait) => wait / 1000);
  return {
    link: 0,
    class: name,
    upperS: seconds.map((wait) => wait * 1.03),
    longestS: seconds,
    counts: seconds.map(() => 1),
  };
}

function waits(delay: DelayBound | null, more: Partial<WaitsOf> = {}): WaitsOf {
  const bounds = delay && { ...FOUND, links: [{ name: "line", delay, classes: [] }] };
  return { name: "", link: "line", histograms: [histogram(null, [1, 4, 10])], bounds, changedS: null, ...more };
}

test("a bound near the longest wait is a line, a far one leaves the axis to the curve", () => {
  const near = delays([waits({ at_most_s: 0.02 })], LIGHT);
  assert.deepEqual(near?.uprights, [{ label: "at most 20 ms", value: 20, color: BLUE }]);
  assert.ok((near?.xRange[1] ?? 0) > 20);
  assert.equal(near?.lines[0]?.note, "median, ms: 4.0; 99 %, ms: 10.0; at most, ms: 20");
  const far = delays([waits({ at_most_s: 0.0201 })], LIGHT);
  assert.deepEqual(far?.xRange, [0, 10]);
  assert.equal(far?.uprights[0]?.label, "at most 20.1 ms");
  assert.deepEqual(far?.remarks, []);
});

test("where there is no bound the text below says why, and a bound of other values says so", () => {
  const reason = "`bulk` sends as fast as it can";
  const none = delays([waits({ reason })], LIGHT);
  assert.deepEqual(none?.uprights, []);
  assert.equal(none?.lines[0]?.figures?.at(-1), "none");
  assert.deepEqual(none?.remarks, [`No bound: ${reason}.`]);
  const pending = delays([waits(null)], LIGHT);
  assert.equal(pending?.lines[0]?.figures?.at(-1), "…");
  const failed = delays([waits(null, { bounds: { ...FOUND, failure: "the network is too large" } })], LIGHT);
  assert.deepEqual(failed?.remarks, ["No bounds: the network is too large."]);
  const changed = delays([waits({ at_most_s: 0.02 }, { changedS: 1.5 })], LIGHT);
  assert.match(changed?.remarks[0] ?? "", /^This run had other values until 1\.50 s/);
});

test("each class has its own curve and bound; of two runs each has that of all packets", () => {
  const classes = [
    { name: "voice", delay: { at_most_s: 0.002 } },
    { name: "data", delay: { reason: "nothing polices it" } },
  ];
  const delay = { reason: "nothing polices it" };
  const bounds = { ...FOUND, links: [{ name: "line", delay, classes }] };
  const histograms = [histogram(null, [1, 4, 10]), histogram("voice", [1]), histogram("data", [4, 10])];
  const one = delays([waits(null, { bounds, histograms })], LIGHT);
  assert.deepEqual(
    one?.lines.map(({ label }) => label),
    ["all packets", "voice", "data"],
  );
  assert.deepEqual(one?.uprights, [{ label: "voice at most 2 ms", value: 2, color: ORANGE }]);
  assert.deepEqual(one?.remarks, ["No bound of all packets, data: nothing polices it."]);
  const both = delays(
    [waits(null, { name: "A", bounds, histograms }), waits({ at_most_s: 0.011 }, { name: "B" })],
    LIGHT,
  );
  assert.deepEqual(
    both?.lines.map(({ label }) => label),
    ["A", "B"],
  );
  assert.deepEqual(
    both?.uprights.map(({ label }) => label),
    ["B at most 11 ms"],
  );
});

test("a distribution ends at the longest wait, not at the end of its bucket", () => {
  const of = { ...histogram(null, [1, 0, 10]), counts: Float64Array.of(1, 0, 3) };
  of.upperS[1] = 0.005;
  assert.deepEqual(cumulative(of), { upperMs: [0, 1, 5, 10], percent: [0, 25, 25, 100] });
});

test("bounds are rounded up", () => {
  const written = [96.81, 96.811, 602.5, 4015, 0.000004, 12345.6, 2.6404000001, 20].map(atMost);
  assert.deepEqual(written, ["96.81", "96.82", "602.5", "4015", "0.000004", "12346", "2.641", "20"]);
});

test("a line is drawn at its place, and beyond the axis an arrow; names lie inside, one above the other", () => {
  const lines: number[] = [];
  const texts: { text: string; x: number; y: number; width: number }[] = [];
  const ctx = {
    save() {},
    restore() {},
    beginPath() {},
    stroke() {},
    setLineDash() {},
    strokeText() {},
    moveTo() {},
    measureText: (text: string) => ({ width: text.length * 6 }),
    lineTo: (x: number) => lines.push(x),
    fillText: (text: string, x: number, y: number, width: number) => texts.push({ text, x, y, width }),
  };
  const bbox = { left: 40, top: 10, width: 300, height: 150 };
  const plot = { ctx, bbox, valToPos: (value: number) => bbox.left + value * 30 } as unknown as Parameters<
    typeof drawUprights
  >[0];
  const uprights = [
    { label: "voice at most 1 ms", value: 1, color: "orange" },
    { label: "data at most 9 ms", value: 9, color: "green" },
    { label: "best effort at most 600 ms", value: 600, color: "blue" },
  ];
  drawUprights(plot, uprights, LIGHT, 1);
  assert.deepEqual(lines, [310, 70]);
  assert.deepEqual(
    texts.map(({ text }) => text),
    ["best effort at most 600 ms →", "data at most 9 ms", "voice at most 1 ms"],
  );
  for (const { text, x, width } of texts) {
    assert.ok(x >= bbox.left && x + width <= bbox.left + bbox.width, text);
  }
  assert.ok((texts[2]?.x ?? 0) > 70, "right of its line, where there is room");
  assert.ok((texts[1]?.x ?? 0) + (texts[1]?.width ?? 0) < 310, "left of its line");
  const heights = texts.map(({ y }) => y);
  assert.ok(
    heights.every((y, i) => i === 0 || y <= (heights[i - 1] ?? 0) - 12),
    heights.join(),
  );
});
