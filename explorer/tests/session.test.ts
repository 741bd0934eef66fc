/** The engine as the page uses it: opens, plays, changes, explains, exports. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { frameOf, type Header } from "../src/engine/frames.ts";
import { type Engine, Refused } from "../src/engine/module.ts";
import { Player } from "../src/engine/player.ts";
import {
  type Changed,
  EVENT,
  EVENT_FIELDS,
  type Explanation,
  type Frame,
  type Opened,
  type Sought,
} from "../src/protocol.ts";
import { toToml } from "../src/ui/values.ts";
import { engine, entries, files, scenario } from "./engine.ts";

function open(one: Engine, toml: string): Opened {
  return one.ask<Opened>({ do: "open", toml, seed: "1" }).value;
}

function frame(one: Engine, ...opened: Opened[]): Frame {
  const { value, numbers } = one.ask<Header>({ do: "frame" });
  const columns = opened.map((each) => each.columns.length);
  return frameOf(value, numbers, columns, 0);
}

/** The values of a column of the first run. */
function column(shown: Frame, opened: Opened, kind: string, name: string = kind): number[] {
  const place = opened.columns.findIndex((each) => each.kind === kind && each.name === name);
  const { times, values } = shown.runs[0]?.samples ?? { times: [], values: [] };
  return Array.from(times, (_, row) => values[row * opened.columns.length + place] ?? Number.NaN);
}

test("the gallery and its index name the same scenarios, and each entry fits its scenario", async () => {
  const one = await engine();
  assert.deepEqual(entries.map(({ id }) => id).sort(), files.sort());
  for (const entry of entries) {
    const opened = open(one, scenario(entry.id));
    assert.ok(
      opened.links.some(({ name, measured }) => name === entry.link && measured),
      `${entry.id}: link ${entry.link}`,
    );
    const paths = opened.controls.map(({ path }) => path);
    for (const path of entry.controls) assert.ok(paths.includes(path), `${entry.id}: ${path} of\n${paths.join("\n")}`);
    for (const { path, value } of entry.compare ?? []) {
      const edited = one.ask<string>({ do: "edit", toml: opened.toml, path, value }).value;
      assert.equal(one.ask({ do: "check", toml: edited }).value, null);
    }
    assert.deepEqual(opened.notices, [], entry.id);
  }
});

test("samples do not depend on how far a run goes at once", async () => {
  const toml = scenario("red");
  const shown = async (steps: number[]) => {
    const one = await engine();
    const opened = open(one, toml);
    for (const untilS of steps) one.ask({ do: "advance", untilS });
    return { opened, shown: frame(one, opened) };
  };
  const [at_once, by_parts] = [await shown([5]), await shown([0.0013, 1, 1.0001, 3.7, 5])];
  assert.deepEqual(at_once.shown.runs[0]?.samples, by_parts.shown.runs[0]?.samples);
  const stepped = await engine();
  const opened = open(stepped, toml);
  for (let i = 0; i < 500; i++) stepped.ask({ do: "step", link: i % 2 ? 0 : null });
  stepped.ask({ do: "seek", timeS: 5 });
  assert.deepEqual(frame(stepped, opened).runs[0]?.samples, at_once.shown.runs[0]?.samples);
  const queue = column(at_once.shown, at_once.opened, "queue");
  assert.equal(queue.length, 251);
  assert.ok(Math.max(...queue) > 5);
});

test("packets are conserved in every sample", async () => {
  const one = await engine();
  const opened = open(one, scenario("rio"));
  one.ask({ do: "advance", untilS: 20 });
  const shown = frame(one, opened);
  const total = (kind: string) => {
    const places = opened.columns.flatMap((each, place) => (each.kind === kind && each.name === "all" ? [place] : []));
    const { times, values } = shown.runs[0]?.samples ?? { times: [], values: [] };
    return Array.from(times, (_, row) =>
      places.reduce((sum, place) => sum + (values[row * opened.columns.length + place] ?? Number.NaN), 0),
    );
  };
  // A change of columns of all colors would show here: kinds have the name of the kind, or "all".
  const names = opened.columns.filter(({ kind }) => kind === "arrived");
  assert.equal(names.length, 3);
  const [arrived, sent, dropped, waiting] = [
    total("arrived"),
    total("sent"),
    total("dropped"),
    column(shown, opened, "queue"),
  ];
  arrived.forEach((packets, row) => {
    assert.equal(packets, (sent[row] ?? 0) + (dropped[row] ?? 0) + (waiting[row] ?? 0), `row ${row}`);
  });
  assert.ok((dropped.at(-1) ?? 0) > 50);
});

test("max_p acts while the run goes on, another AQM begins again", async () => {
  const one = await engine();
  const opened = open(one, scenario("red"));
  one.ask({ do: "advance", untilS: 10 });
  const before = one.ask<Header>({ do: "frame" }).value.generation;
  const set = (path: string, value: string) => one.ask<Changed>({ do: "set", path, value, which: 0 }).value;
  const live = set("links.bottleneck.queue.thresholds.max_p", "0.02");
  assert.deepEqual([live.how, live.generation], ["live", before]);
  assert.ok(live.toml.includes('thresholds = "15/45/0.02"') && live.toml.startsWith("# The classic setting"));
  const anew = set("links.bottleneck.queue.aqm", '"codel"');
  assert.deepEqual([anew.how, anew.generation, anew.opened.links[0]?.aqm], ["restarted", before + 1, "codel"]);
  const shown = frame(one, anew.opened);
  assert.deepEqual([shown.timeS, shown.fresh, shown.runs[0]?.samples.times[0]], [10, true, 0]);
  assert.ok(opened.columns.length > anew.opened.columns.length - 2);
});

test("a second mechanism runs beside the first on the same seed", async () => {
  const one = await engine();
  const toml = scenario("red");
  const opened = open(one, toml);
  one.ask({ do: "advance", untilS: 3 });
  const second = one.ask<Opened>({ do: "compare", toml }).value;
  one.ask({ do: "advance", untilS: 6 });
  const shown = frame(one, opened, second);
  assert.equal(shown.runs.length, 2);
  assert.deepEqual(shown.runs[0]?.samples, shown.runs[1]?.samples);
  assert.equal(one.ask({ do: "compare", toml: null }).value, null);
  assert.equal(frame(one, opened).runs.length, 1);
});

test("RED's drop by chance has its average, probability and random number", async () => {
  const one = await engine();
  const opened = open(one, scenario("red"));
  one.ask({ do: "advance", untilS: 30 });
  const { events } = frame(one, opened).runs[0] ?? { events: new Float64Array() };
  const early = opened.reasons.indexOf("early");
  let [seen, drawn] = [0, 0];
  for (let at = 0; at < events.length; at += EVENT_FIELDS) {
    if (events[at + EVENT.reason] !== early) continue;
    const told = one.ask<Explanation>({ do: "explain", event: events[at + EVENT.id], which: 0 }).value;
    const fact = (name: string) => told.facts.find((each) => each.name === name)?.value ?? Number.NaN;
    const [average, p_b, p, number] = ["average total", "p_b", "probability", "random number"].map(fact) as [
      number,
      number,
      number,
      number,
    ];
    // Where the spread probability has come to 1, no number is drawn.
    assert.ok(average >= 15 && average < 45 && p >= p_b - 1e-12, told.sentence);
    assert.ok(p === 1 ? Number.isNaN(number) && /certain/.test(told.sentence) : number < p, told.sentence);
    drawn += p < 1 ? 1 : 0;
    assert.ok(Math.abs(p_b - (0.1 * (average - 15)) / 30) < 1e-12);
    assert.ok(
      told.decisive.every((line) => line < told.rule.length) && told.rule[told.decisive.at(-1) ?? 0]?.includes("early"),
    );
    assert.match(told.source, /Floyd/);
    seen++;
  }
  assert.ok(seen > 10 && drawn > 10, `${seen} ${drawn}`);
});

/** All that a run shows from its beginning to now. */
function whole(one: Engine, ...opened: Opened[]) {
  const shown = frame(one, ...opened);
  assert.equal(shown.fresh, true);
  return shown.runs.map(({ samples, events }) => ({ samples, events }));
}

const MAX_P = "links.bottleneck.queue.thresholds.max_p";

/** The explanations of all drops and marks so far. */
function told(one: Engine, opened: Opened): Explanation[] {
  const { events } = frame(one, opened).runs[0] ?? { events: new Float64Array() };
  const ids = Array.from({ length: events.length / EVENT_FIELDS }, (_, i) => events[i * EVENT_FIELDS + EVENT.id]);
  return ids.map((event) => one.ask<Explanation>({ do: "explain", event, which: 0 }).value);
}

function factOf(explanation: Explanation, name: string): number {
  return explanation.facts.find((each) => each.name === name)?.value ?? Number.NaN;
}

test("FQ-CoDel's drops have their flow's queue and its CoDel's count and times", async () => {
  const one = await engine();
  const opened = open(one, scenario("calls-beside-downloads"));
  one.ask({ do: "advance", untilS: 20 });
  const drops = told(one, opened);
  assert.ok(drops.length > 20, String(drops.length));
  const queues = new Map<string, number>();
  const next = new Map<number, number>();
  for (const drop of drops) {
    assert.equal(drop.reason, "target");
    const fact = (name: string) => factOf(drop, name);
    const queue = fact("queue of the flow");
    // Four downloads and three calls in 1024 queues: here no two share one.
    assert.equal(queues.get(drop.flow) ?? queue, queue);
    queues.set(drop.flow, queue);
    assert.ok(fact("sojourn time") >= 0.005 && fact("target") === 0.005 && fact("interval") === 0.1, drop.sentence);
    const already = fact("dropping already") === 1;
    const times = already
      ? [fact("this drop was due at"), next.get(queue)]
      : [fact("above the target since") + 0.1 <= drop.timeS + 1e-9, true];
    if (already) assert.ok(Math.abs((times[0] as number) - (times[1] as number)) < 1e-6, "due as was told before");
    else assert.equal(times[0], times[1]);
    // The next one comes an interval over the root of the count after this one was due.
    const from = already ? fact("this drop was due at") : drop.timeS;
    assert.ok(Math.abs(fact("next drop due at") - from - 0.1 / Math.sqrt(fact("count"))) < 1e-6, drop.sentence);
    next.set(queue, fact("next drop due at"));
    assert.equal(drop.rule[drop.decisive.at(-1) ?? 0]?.includes("√count"), true);
    assert.equal(drop.decisive.includes(5), !already);
    assert.match(drop.sentence, already ? /next drop was due/ : /dropping began/);
    assert.match(drop.source, /8290/);
  }
  assert.equal(new Set(queues.values()).size, queues.size);
  assert.ok(next.size > 1);
});

test("FQ-CoDel drops from the queue with the most bytes when all are full", async () => {
  const one = await engine();
  const toml = scenario("calls-beside-downloads").replace('"fq-codel"', '"fq-codel", limit = "20p"');
  const opened = open(one, toml);
  one.ask({ do: "advance", untilS: 3 });
  const full = told(one, opened).filter(({ reason }) => reason === "overflow");
  assert.ok(full.length > 5);
  let before = { left: 0, queue: -1, timeS: -1 };
  for (const drop of full) {
    assert.match(drop.sentence, /all queues together were too full, and its flow's queue had the most bytes/);
    // Of 21 packets the first is dropped, and then up to half of that queue.
    const left = factOf(drop, "packets left in all queues");
    const queue = factOf(drop, "queue of the flow");
    if (left !== 20) assert.deepEqual([left, queue, drop.timeS], [before.left - 1, before.queue, before.timeS]);
    before = { left, queue, timeS: drop.timeS };
    assert.deepEqual(drop.decisive, [1]);
  }
});

test("DualPI2's marks have p', the coupled probabilities and the counter that came above 1", async () => {
  const one = await engine();
  const opened = open(one, scenario("l4s-dualpi2"));
  one.ask({ do: "advance", untilS: 20 });
  const seen = { l4s: 0, classic: 0 };
  for (const mark of told(one, opened)) {
    const fact = (name: string) => factOf(mark, name);
    const queue = mark.facts.find(({ name }) => name === "queue")?.text;
    const [p, coupled, squared] = [fact("p'"), fact("p_CL"), fact("p_C")];
    assert.ok(Math.abs(coupled - 2 * p) < 1e-12 && Math.abs(squared - p * p) < 1e-12);
    assert.ok(coupled < 1, "no overload here");
    const probability = queue === "L4S" ? Math.min(1, Math.max(fact("p'_L"), coupled)) : squared;
    assert.ok(Math.abs(fact("probability") - probability) < 1e-12, mark.sentence);
    assert.ok(fact("counter before") <= 1 && fact("counter before") + probability > 1, mark.sentence);
    assert.equal(mark.reason, queue === "L4S" && fact("p'_L") > coupled ? "step" : "controller");
    assert.equal(mark.flow, queue === "L4S" ? "prague/0" : "cubic/0");
    assert.ok(mark.decisive.some((line) => mark.rule[line]?.includes(queue === "L4S" ? "counter_L >" : "counter_C >")));
    seen[queue === "L4S" ? "l4s" : "classic"]++;
  }
  assert.ok(seen.l4s > 20 && seen.classic > 3, JSON.stringify(seen));
  // Without the classic flow p' stays at 0, and sojourn times above the step mark.
  const alone = open(one, scenario("l4s-dualpi2").split("[[flows]]").slice(0, 2).join("[[flows]]"));
  one.ask({ do: "advance", untilS: 10 });
  const steps = told(one, alone);
  assert.ok(steps.length > 20 && steps.every(({ reason }) => reason === "step"));
  for (const mark of steps) {
    assert.ok(factOf(mark, "p'_L") > factOf(mark, "p_CL") && factOf(mark, "sojourn time") > 0.0008, mark.sentence);
    assert.deepEqual(mark.decisive, [3, 4, 5]);
  }
});

test("DualPI2 by Linux's law has the random numbers", async () => {
  const one = await engine();
  const toml = scenario("l4s-dualpi2").replace('"dualpi2"', '"dualpi2", law = "linux"');
  const opened = open(one, toml);
  one.ask({ do: "advance", untilS: 20 });
  let [l4s, classic] = [0, 0];
  for (const mark of told(one, opened).filter(({ reason }) => reason === "controller")) {
    const fact = (name: string) => factOf(mark, name);
    const isL4s = mark.facts.some(({ name, text }) => name === "queue" && text === "L4S");
    const tests = isL4s ? [""] : [" of test 1", " of test 2"];
    for (const which of tests) {
      const probability = fact(`probability${which}`);
      assert.ok(fact(`random number${which}`) < probability, mark.sentence);
      // In steps of 2^-32, and of 2^-16 for k.
      assert.ok(Math.abs(probability - fact(isL4s ? "p_CL" : "p'")) < 1e-8, mark.sentence);
    }
    if (isL4s) l4s++;
    else classic++;
  }
  assert.ok(l4s > 20 && classic > 3, `${l4s} ${classic}`);
});

test("each parameter of the gallery that the text leaves out can be set to its default and taken out again", async () => {
  const one = await engine();
  let seen = 0;
  for (const id of files) {
    const toml = scenario(id);
    const absent = open(one, toml).controls.filter(({ isSet }) => !isSet);
    for (const control of absent) {
      assert.notEqual(control.default, "", `${id}: ${control.path}`);
      if (control.value === null) continue;
      const value = toToml(control, control.value);
      const edited = one.ask<string>({ do: "edit", toml, path: control.path, value }).value;
      assert.notEqual(edited, toml, `${id}: ${control.path}`);
      assert.equal(one.ask({ do: "check", toml: edited }).value, null, edited);
      let back = one.ask<string>({ do: "edit", toml: edited, path: control.path, value: "" }).value;
      // A congestion control that the text leaves out is named beside its parameter.
      const name = control.path.replace(/\.congestion\..*$/, ".congestion.control");
      if (name !== control.path && absent.some(({ path }) => path === name))
        back = one.ask<string>({ do: "edit", toml: back, path: name, value: "" }).value;
      assert.equal(back, toml, edited);
      seen++;
    }
  }
  assert.ok(seen > 100, String(seen));
});

test("going back replays what was changed while the run went on, and undoes what was changed later", async () => {
  const one = await engine();
  const toml = scenario("red");
  const opened = open(one, toml);
  const seek = (timeS: number) => one.ask<Sought>({ do: "seek", timeS }).value;
  const set = (value: string, which = 0) => one.ask<Changed>({ do: "set", path: MAX_P, value, which }).value;
  const second = one.ask<Opened>({ do: "compare", toml }).value;
  one.ask({ do: "advance", untilS: 4 });
  assert.equal(set("0.02").how, "live");
  one.ask({ do: "advance", untilS: 8.123456789 });
  assert.equal(set("0.5").how, "live");
  // The other run begins again for its own change; the first keeps what was changed in it.
  const anew = one.ask<Changed>({ do: "set", path: "links.bottleneck.queue.aqm", value: '"codel"', which: 1 }).value;
  assert.equal(anew.how, "restarted");
  one.ask({ do: "advance", untilS: 12 });
  const before = whole(one, opened, anew.opened);
  assert.ok(second.columns.length > 0 && (before[0]?.events.length ?? 0) > 10 * EVENT_FIELDS);

  const none = seek(9);
  assert.deepEqual([none.undone, none.opened], [0, []]);
  seek(12);
  assert.deepEqual(whole(one, opened, anew.opened), before, "both changes act again");

  const back = seek(8.123456788);
  assert.deepEqual([back.undone, back.opened.length], [1, 2]);
  assert.match(back.opened[0]?.toml ?? "", /15\/45\/0\.02/);
  seek(12);
  const [first_only] = whole(one, opened, anew.opened);
  assert.notDeepEqual(first_only?.samples, before[0]?.samples);

  const start = seek(3.999);
  assert.deepEqual([start.undone, start.opened[0]?.toml], [1, toml]);
  seek(12);
  const [unchanged] = whole(one, opened, anew.opened);
  const other = await engine();
  open(other, toml);
  other.ask({ do: "advance", untilS: 12 });
  assert.deepEqual(unchanged, whole(other, opened)[0], "nothing is left of the changes");
});

test("a drop's sentence names a color where packets have one, and none where nothing colors them", async () => {
  for (const [id, begins] of [
    ["red", /^This packet of downloads was dropped/],
    ["rio", /^This (green|yellow) packet of (assured|best effort) was dropped/],
  ] as const) {
    const one = await engine();
    const opened = open(one, scenario(id));
    one.ask({ do: "advance", untilS: 20 });
    const all = told(one, opened);
    assert.ok(all.length > 5, id);
    for (const { sentence } of all) assert.match(sentence, begins);
  }
});

test("a drop is explained by the parameters of its time", async () => {
  const one = await engine();
  const opened = open(one, scenario("red"));
  one.ask({ do: "advance", untilS: 20 });
  const { events } = frame(one, opened).runs[0] ?? { events: new Float64Array() };
  const early = opened.reasons.indexOf("early");
  const ids = Array.from({ length: events.length / EVENT_FIELDS }, (_, i) => i * EVENT_FIELDS)
    .filter((at) => events[at + EVENT.reason] === early)
    .map((at) => events[at + EVENT.id]);
  const told = () => ids.map((event) => one.ask<Explanation>({ do: "explain", event, which: 0 }).value);
  const before = told();
  assert.ok(before.length > 5);
  one.ask({ do: "set", path: MAX_P, value: "0.9", which: 0 });
  assert.deepEqual(told(), before);
});

test("a change while it plays acts from its time on, and playing goes on", async () => {
  const play = async (change: boolean) => {
    let clock = 0;
    const frames: Frame[] = [];
    const player = new Player(await engine(), { now: () => clock, send: (sent) => frames.push(sent) });
    const opened = player.answer({ id: 0, do: "open", toml: scenario("red"), seed: "1" }) as Opened;
    player.answer({ id: 1, do: "play", speed: 4 });
    let changedAt = Number.NaN;
    for (let tick = 1; tick <= 180; tick++) {
      clock = (tick * 1000) / 60;
      player.tick();
      if (change && tick === 90) {
        const sent = frames.length;
        const changed = player.answer({ id: 2, do: "set", path: MAX_P, value: "0.01", which: 0 }) as Changed;
        assert.deepEqual([changed.how, frames.length], ["live", sent + 1], "its frame comes with the answer");
        changedAt = frames.at(-1)?.timeS ?? Number.NaN;
      }
      assert.ok(player.isPlaying);
    }
    assert.ok(
      frames.every(({ fresh }, i) => fresh === (i === 0)),
      "nothing begins again",
    );
    const queue = opened.columns.findIndex(({ kind }) => kind === "queue");
    const rows = frames.flatMap(({ runs }) =>
      Array.from(runs[0]?.samples.times ?? [], (time, row) => [
        time,
        runs[0]?.samples.values[row * opened.columns.length + queue] ?? Number.NaN,
      ]),
    );
    return { rows, changedAt, end: frames.at(-1)?.timeS ?? 0 };
  };
  const [plain, changed] = [await play(false), await play(true)];
  assert.deepEqual([changed.end, changed.rows.length], [plain.end, plain.rows.length]);
  assert.ok(Math.abs(changed.changedAt - 6) < 1e-6, String(changed.changedAt));
  const is_before = ([time]: number[]) => (time ?? 0) <= changed.changedAt;
  assert.deepEqual(changed.rows.filter(is_before), plain.rows.filter(is_before));
  const mean = (rows: number[][]) => {
    const late = rows.filter((row) => !is_before(row)).map(([, queue]) => queue ?? Number.NaN);
    return late.reduce((sum, queue) => sum + queue, 0) / late.length;
  };
  // A tenth of the drops at the same average: the queue grows.
  assert.ok(mean(changed.rows) > mean(plain.rows), `${mean(changed.rows)} ${mean(plain.rows)}`);
});

test("problems say where they stand", async () => {
  const one = await engine();
  const wrong = scenario("red").replace('limit = "120p"', 'limit = "120"');
  const problem = one.ask<{ line: number; column: number; key: string; text: string }>({
    do: "check",
    toml: wrong,
  }).value;
  assert.deepEqual([problem.line, problem.key], [11, "links.bottleneck.queue.limit"]);
  assert.match(problem.text, /868p/);
  assert.throws(() => open(one, wrong), Refused);
});

test("exports are tables, whose names begin no formula", async () => {
  const one = await engine();
  open(one, scenario("bufferbloat").replace('name = "call"', 'name = "=1+1,\\"x\\""'));
  one.ask({ do: "advance", untilS: 10 });
  const csv = (kind: string) => one.ask<string>({ do: "export", kind, which: 0 }).value.trimEnd().split("\n");
  const samples = csv("samples");
  assert.equal(samples.length, 1002);
  assert.match(samples[0] ?? "", /^time_s,uplink queue \(packets\),uplink bytes \(bytes\),uplink delay \(s\)/);
  assert.match(samples[0] ?? "", /"'=1\+1,""x""/);
  assert.equal(csv("events")[0], "time_s,link,flow,color,event,reason,size_bytes");
  const outcome = JSON.parse(one.ask<string>({ do: "export", kind: "outcome", which: 0 }).value) as Record<
    string,
    number
  >;
  assert.ok((outcome["links.uplink.utilization"] ?? 0) > 0.9);
});

test("hostile requests and texts are refused, and the engine goes on", async () => {
  const one = await engine();
  const toml = scenario("red");
  const texts = [
    "",
    "\0",
    "x".repeat(2_000_000),
    "[".repeat(100_000),
    "a = ".concat("[".repeat(20_000)),
    `a${".a".repeat(20_000)} = 1`,
    toml.replace("count = 8", "count = 4000000000"),
    toml.replace('rate = "10Mbps"', 'rate = "9999999999999999999Gbps"'),
    toml.replace('duration = "120s"', 'duration = "99999999999999s"'),
    toml.replace('to = "b"', 'to = "<img src=x onerror=alert(1)>"').slice(0, -200),
    'title = "<script>"',
  ];
  for (const text of texts) {
    assert.throws(() => open(one, text), Refused, text.slice(0, 60));
    assert.notEqual(one.ask({ do: "check", toml: text }).value, null);
  }
  open(one, toml);
  for (const request of [
    { do: "nothing" },
    { do: "open", toml, seed: "-1" },
    { do: "open", toml, seed: "18446744073709551616" },
    { do: "advance", untilS: -1 },
    { do: "advance", untilS: 1e300 },
    { do: "set", path: "__proto__.x", value: "1", which: 0 },
    { do: "set", path: "links.bottleneck.queue.limit", value: '"1p"\n[x]', which: 0 },
    { do: "set", path: "duration", value: '"1s"', which: 7 },
    { do: "explain", event: 1e9, which: 0 },
    { do: "export", kind: "../../etc/passwd", which: 0 },
  ]) {
    assert.throws(() => one.ask(request), Refused, JSON.stringify(request));
  }
  one.ask({ do: "advance", untilS: 1 });
});

test("a player runs at its speed, and sends frames", async () => {
  let clock = 0;
  const frames: Frame[] = [];
  const player = new Player(await engine(), { now: () => clock, send: (sent) => frames.push(sent) });
  player.answer({ id: 0, do: "open", toml: scenario("red"), seed: "1" });
  player.answer({ id: 1, do: "play", speed: 4 });
  for (let tick = 1; tick <= 60; tick++) {
    clock = (tick * 1000) / 60;
    player.tick();
  }
  assert.ok(Math.abs((frames.at(-1)?.timeS ?? 0) - 4) < 1e-6, String(frames.at(-1)?.timeS));
  const rows = frames.reduce((sum, each) => sum + (each.runs[0]?.samples.times.length ?? 0), 0);
  assert.equal(rows, 201);
  player.answer({ id: 2, do: "pause" });
  assert.equal(player.isPlaying, false);
});
