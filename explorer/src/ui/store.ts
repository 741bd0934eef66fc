// What one can do with the page. Components read the signals; everything that acts goes through the functions here.

import { batch } from "@preact/signals";
import { GivenUp } from "../engine/seeds.ts";
import {
  type Changed,
  type Frame,
  type GalleryEntry,
  type Intervals,
  type Opened,
  type Problem,
  ScenarioProblem,
  type Session,
  type Which,
} from "../protocol.ts";
import { type Change, decodeState, encodeState, isSeed, MOST_CHANGES, MOST_LINK, type PageState } from "../state.ts";
import { followBounds } from "./bounding.ts";
import { History } from "./history.ts";
import {
  changes,
  chosen,
  compareLabel,
  drafts,
  drawn,
  ended,
  entry,
  explanation,
  first,
  follow,
  gallery,
  intervals,
  linkName,
  linkOf,
  measuring,
  message,
  optional,
  panel,
  playing,
  problems,
  runs,
  type Shown,
  seed,
  seedCount,
  setting,
  speed,
  subject,
  target,
  time,
  wholeRun,
} from "./signals.ts";

export * from "./signals.ts";

let session: Session | null = null;
let generation = -1;
let base: [string, string | null] = ["", null];
let urgent = false;
let lastDraw = 0;
/** From one picture of the charts to the next, in ms: eight a second, fewer where they take long. */
let drawGap = 120;
/** Wall times of frames, for the measurement of the page's own speed. */
export const frameTimes: number[] = [];

/** Runs the page with this engine. */
export async function begin(engine: Session, entries: GalleryEntry[]): Promise<void> {
  session = engine;
  engine.onframe = onFrame;
  engine.onfault = (text) => say(`The engine has failed: ${text}. Reload the page.`, true);
  gallery.value = entries;
  followBounds(engine);
  addEventListener("hashchange", () => void fromAddress());
  await fromAddress();
}

/** Opens what the address says, or the first scenario of the gallery. */
async function fromAddress(): Promise<void> {
  if (location.hash === written) return;
  const decoded = await decodeState(location.hash);
  if (decoded.kind === "state") {
    await restore(decoded.state);
    return;
  }
  let wrong = decoded.kind === "wrong" ? decoded.message : "";
  const wanted = decoded.kind === "gallery" ? gallery.value.find(({ id }) => id === decoded.id) : gallery.value[0];
  if (!wanted && decoded.kind === "gallery") wrong = `The gallery has no scenario \`${decoded.id}\`.`;
  const open = wanted ?? gallery.value[0];
  if (open) await openEntry(open, true);
  // Last, so that nothing that opening says takes its place.
  if (wrong !== "") say(wrong, true);
}

/** Says something to everybody. */
export function say(text: string, bad = false): void {
  message.value = { text, bad };
}

/** The engine's answer, or `null` after saying what is wrong. */
async function attempt<T>(work: (engine: Session) => Promise<T>, which: Which | null = null): Promise<T | null> {
  if (!session) return null;
  try {
    const value = await work(session);
    if (which !== null) setProblem(which, null);
    return value;
  } catch (error) {
    if (error instanceof ScenarioProblem) {
      if (which !== null) setProblem(which, error.problem);
      const { line, text } = error.problem;
      say(line === null ? text : `Line ${line}: ${text}`, true);
    } else if (!(error instanceof GivenUp)) {
      say(`The engine has failed: ${error instanceof Error ? error.message : String(error)}`, true);
    }
    return null;
  }
}

function setProblem(which: Which, problem: Problem | null): void {
  problems.value = which === 0 ? [problem, problems.value[1]] : [problems.value[0], problem];
}

export function setDraft(which: Which, text: string): void {
  drafts.value = which === 0 ? [text, drafts.value[1]] : [drafts.value[0], text];
}

function show(which: Which, opened: Opened | null, keep: boolean): void {
  const before = runs.value[which];
  let next: Shown | null = null;
  if (opened) {
    const history = new History(opened);
    if (keep && before && before.opened.columns.length === opened.columns.length) {
      Object.assign(history, { ...before.history, opened });
    }
    next = { opened, history };
    const absent = opened.controls.filter(({ isSet }) => !isSet).map(({ path }) => path);
    optional.value = new Set([...optional.value, ...absent]);
    setDraft(which, opened.toml);
  }
  runs.value = which === 0 ? [next, runs.value[1]] : [runs.value[0], next];
}

/** Frames that came while the engine opened or changed something: they belong to what its answer describes. */
let held: Frame[] | null = null;

function hold(): void {
  held ??= [];
}

/** Goes on with the frames that were held: after opening, with those of the new run only. */
function release(isNew: boolean): void {
  const frames = held ?? [];
  held = null;
  if (isNew) generation = -1;
  const from = isNew ? frames.findLastIndex((frame) => frame.fresh) : 0;
  for (const frame of frames.slice(Math.max(0, from))) onFrame(frame);
}

function onFrame(frame: Frame): void {
  if (held) {
    held.push(frame);
    return;
  }
  if (frame.generation < generation) return;
  generation = frame.generation;
  const began = performance.now();
  batch(() => {
    frame.runs.forEach((run, which) => {
      runs.value[which]?.history.append(run, frame.fresh);
    });
    time.value = frame.timeS;
    if (frame.ended !== ended.value) ended.value = frame.ended;
    if (frame.ended && playing.value) {
      playing.value = false;
      say("The run has ended.");
    }
    // Charts need fewer pictures than the network, and at once after a change.
    const now = performance.now();
    if (urgent || !playing.value || frame.fresh || now - lastDraw > drawGap) {
      urgent = false;
      lastDraw = now;
      drawn.value++;
      requestAnimationFrame(() => setTimeout(() => paceDrawing(performance.now() - now)));
    }
  });
  frameTimes.push(performance.now() - began);
  if (frameTimes.length > 2000) frameTimes.splice(0, 1000);
}

/** Charts take at most a third of the time, so that the page stays usable on a slow machine. */
function paceDrawing(tookMs: number): void {
  drawGap = Math.max(120, Math.min(3 * tookMs, 2000));
}

/** Opens a scenario; `true` if it is right. */
export async function open(
  toml: string,
  wanted: { seed?: string; atS?: number; compare?: string | null },
): Promise<boolean> {
  await pause();
  setDraft(0, toml);
  hold();
  const opened = await attempt((engine) => engine.open(toml, wanted.seed ?? seed.value), 0);
  if (!opened) {
    release(false);
    return false;
  }
  batch(() => {
    explanation.value = null;
    chosen.value = null;
    changes.value = [];
    intervals.value = [null, null];
    ended.value = false;
    time.value = 0;
    seed.value = opened.seed;
    show(0, opened, false);
    show(1, null, false);
    target.value = 0;
    urgent = true;
    release(true);
  });
  base = [opened.toml, null];
  document.title = `${opened.title || "perhop explorer"} – perhop explorer`;
  await compare(wanted.compare ?? null);
  if (wanted.atS) await attempt((engine) => engine.seek(wanted.atS ?? 0));
  drawn.value++;
  return true;
}

/** What is known of the controls of the scenario before says nothing of those of the next one. */
function beginAnother(): void {
  optional.value = new Set();
  subject.value++;
}

/** Opens a scenario of the gallery, and plays it. */
export async function openEntry(item: GalleryEntry, quietly = false): Promise<void> {
  const response = await fetch(`gallery/${item.id}.toml`).catch(() => null);
  if (!response?.ok) {
    say(`The scenario \`${item.id}\` of the gallery cannot be read.`, true);
    return;
  }
  entry.value = item;
  linkName.value = item.link;
  compareLabel.value = "";
  const toml = await response.text();
  beginAnother();
  if (!(await open(toml, { seed: "1" }))) return;
  if (item.compare) await compareBy(item.compare);
  panel.value = "parameters";
  speed.value = item.speed;
  if (quietly) message.value = null;
  if (!quietly) say(`Opened: ${item.title}.`);
  writeAddress(`#g=${item.id}`);
  await play();
}

/** Puts a copy of the scenario with these changes beside it. */
async function compareBy(sets: { path: string; value: string; label: string }[]): Promise<void> {
  let toml: string | null = base[0];
  for (const { path, value } of sets) toml = await edit(toml, path, value);
  if (toml !== null && (await compare(toml))) compareLabel.value = sets[0]?.label ?? "";
}

/** The text with another value; `null` after saying what is wrong, or without a text. */
async function edit(toml: string | null, path: string, value: string): Promise<string | null> {
  return toml === null ? null : attempt((engine) => engine.edited(toml, path, value));
}

/** Puts a copy beside the scenario, with this table as the queue of a link; `null` leaves the copy as it is. */
export async function compareWith(queue: { link: string; table: string; label: string } | null): Promise<void> {
  const shown = first.value;
  if (!shown) return;
  const was = playing.value;
  await pause();
  const copy = shown.opened.toml;
  const toml = queue ? await edit(copy, `links.${queue.link}.queue`, queue.table) : copy;
  if (toml !== null && (await compare(toml))) {
    compareLabel.value = queue?.label ?? "";
    say(`Beside it on the same seed: ${queue?.label ?? "a copy"}.`);
    edited();
  }
  if (was) await play();
}

/** Puts a scenario beside the first, on the same seed; `null` takes it away. */
export async function compare(toml: string | null): Promise<boolean> {
  if (toml === null) {
    if (runs.value[1]) await attempt((engine) => engine.compare(null));
    batch(() => {
      show(1, null, false);
      target.value = 0;
      compareLabel.value = "";
      changes.value = changes.value.filter(({ which }) => which === 0);
    });
    base = [base[0], null];
    drawn.value++;
    return true;
  }
  setDraft(1, toml);
  hold();
  const opened = await attempt((engine) => engine.compare(toml), 1);
  urgent = true;
  if (opened) show(1, opened, false);
  release(false);
  if (!opened) {
    setDraft(1, runs.value[1]?.opened.toml ?? "");
    return false;
  }
  beganAnew(1, opened.toml);
  drawn.value++;
  return true;
}

export async function play(): Promise<void> {
  if (ended.value) await restart();
  playing.value = true;
  await attempt((engine) => engine.play(speed.value));
}

export async function pause(): Promise<void> {
  if (!playing.value) return;
  playing.value = false;
  await attempt((engine) => engine.pause());
  drawn.value++;
}

export async function setSpeed(value: number): Promise<void> {
  speed.value = value;
  if (playing.value) await attempt((engine) => engine.play(value));
}

/** One packet further at the link that the charts show. */
export async function step(): Promise<void> {
  await pause();
  const opened = first.value?.opened;
  if (opened) await attempt((engine) => engine.step(linkOf(opened)));
}

/** How many packets "Next drop" looks at. */
export const MOST_STEPS = 5000;

/** On to the next drop or mark at this link, and why. */
export async function nextDrop(): Promise<void> {
  await pause();
  const run = first.value;
  if (!run || !session) return;
  const link = linkOf(run.opened);
  const latest = () => run.history.signals.filter((signal) => signal.link === link).at(-1);
  const before = latest()?.id ?? -1;
  for (let i = 0; i < MOST_STEPS && !ended.value; i++) {
    await attempt((engine) => engine.step(link));
    const now = latest();
    if (now && now.id !== before) {
      await explain(now.id, 0);
      return;
    }
  }
  say(
    ended.value
      ? "The run has ended without another drop or mark at this link."
      : `Stopped at ${time.value.toFixed(2)} s: no drop or mark in the next ${MOST_STEPS} packets at this link. Press again to go on.`,
  );
}

/** To another time. Going back, the run begins again: changes made by then act again at their times, later ones are undone. */
export async function seek(timeS: number): Promise<void> {
  const isBack = timeS < time.value;
  if (isBack) {
    explanation.value = null;
    chosen.value = null;
  }
  hold();
  const sought = await attempt((engine) => engine.seek(timeS));
  batch(() => {
    if (sought) {
      const isKept = ({ atS }: Change) => Math.round(atS * 1e9) <= Math.round(timeS * 1e9);
      if (isBack) changes.value = changes.value.filter(isKept);
      for (const which of [0, 1] as const) {
        const opened = sought.opened[which];
        if (opened) show(which, opened, true);
      }
      urgent = true;
    }
    release(false);
    drawn.value++;
  });
  if (!sought || !isBack) return;
  const replayed = changes.value.length > 0 ? `, ${count(changes.value.length, "change")} replayed` : "";
  const undone = sought.undone > 0 ? ` ${count(sought.undone, "later change")} undone.` : "";
  say(`Back at ${timeS.toFixed(2)} s${replayed}.${undone}`);
  edited();
}

/** `3 changes`. */
function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

/** Back to time zero, with the parameters as they are. */
export async function restart(): Promise<void> {
  const was = playing.value;
  const [a, b] = runs.value;
  if (!a) return;
  const label = compareLabel.value;
  if (!(await open(a.opened.toml, { compare: b?.opened.toml ?? null }))) return;
  compareLabel.value = label;
  if (was) await play();
}

export async function setSeed(text: string): Promise<void> {
  if (!isSeed(text)) {
    say(`Seed \`${text}\`: expected a whole number from 0 to 18446744073709551615.`, true);
    return;
  }
  seed.value = text;
  await restart();
}

/** The engine's answer to a change; frames are held until `took`. */
async function setIn(which: Which, path: string, value: string): Promise<Changed | null> {
  hold();
  const changed = await attempt((engine) => engine.set(path, value, which), which);
  if (!changed) release(false);
  return changed;
}

function took(which: Which, changed: Changed): void {
  batch(() => {
    generation = Math.max(generation, changed.generation);
    urgent = true;
    // A run that began again sends its samples with the next frame; until then the old picture stays.
    show(which, changed.opened, true);
    release(false);
    drawn.value++;
  });
  // The other run went on, with its changes.
  if (changed.how === "restarted") beganAnew(which, changed.toml);
}

/** This run begins with this text, at time zero. */
function beganAnew(which: Which, toml: string): void {
  base = which === 0 ? [toml, base[1]] : [base[0], toml];
  changes.value = changes.value.filter((change) => change.which !== which);
}

/** What waits to be set: of several values of a slider only the newest. */
const waiting = new Map<string, { path: string; value: string; which: Which }>();

/** Sets a parameter, to a value in TOML. */
export async function set(path: string, value: string, which: Which): Promise<void> {
  waiting.set(`${which} ${path}`, { path, value, which });
  if (setting.value) return;
  setting.value = true;
  try {
    for (;;) {
      const next = waiting.entries().next().value;
      if (!next) break;
      waiting.delete(next[0]);
      await setNow(next[1].path, next[1].value, next[1].which);
    }
  } finally {
    setting.value = false;
  }
}

async function setNow(path: string, value: string, which: Which): Promise<void> {
  const changed = await setIn(which, path, value);
  if (!changed) return;
  took(which, changed);
  // Of the frame that came with the answer: while it plays, the engine is ahead of what the page showed before.
  const atS = time.value;
  if (changed.how === "live") changes.value = [...changes.value, { atS, which, path, value }];
  if (wholeRun.value && changed.how === "live") await again(atS);
  const what = said(path, value);
  say(
    changed.how === "live" && !wholeRun.value
      ? `${what} from ${atS.toFixed(2)} s on.`
      : `${what}: the run began again on the same seed.`,
  );
  edited();
}

/** What a change sets; no value takes the key out of the text. */
export function said(path: string, value: string): string {
  return value === "" ? `${path} as by default` : `${path} = ${value}`;
}

/** The run from time zero with the parameters as they are, up to this time. */
async function again(atS: number): Promise<void> {
  const was = playing.value;
  const [a, b] = runs.value;
  if (!a || !session) return;
  const which = target.value;
  const label = compareLabel.value;
  if (!(await open(a.opened.toml, { compare: b?.opened.toml ?? null, atS }))) return;
  target.value = which;
  compareLabel.value = label;
  if (was) await play();
}

let following: ReturnType<typeof setTimeout> | undefined;

function edited(): void {
  writeAddress("");
  if (!follow.value) return;
  clearTimeout(following);
  following = setTimeout(() => void measure(), 120);
}

/** Takes the text of an editor over. */
export async function apply(which: Which): Promise<boolean> {
  hold();
  const changed = await attempt((engine) => engine.text(drafts.value[which], which), which);
  if (!changed) {
    release(false);
    return false;
  }
  took(which, changed);
  if (changed.how === "live") {
    base = which === 0 ? [changed.toml, base[1]] : [base[0], changed.toml];
    await again(time.value);
  }
  say("The scenario runs from its beginning, as the text says.");
  edited();
  return true;
}

/** What is wrong with the text of an editor, without running it. */
export async function check(which: Which): Promise<void> {
  const text = drafts.value[which];
  const problem = await session?.check(text).catch(() => null);
  if (drafts.value[which] === text) setProblem(which, problem ?? null);
}

/** Why this packet was dropped or marked. */
export async function explain(id: number, which: Which): Promise<void> {
  chosen.value = { id, which };
  const found = await attempt((engine) => engine.explain(id, which));
  if (found && chosen.value?.id === id) explanation.value = found;
}

let measurement = 0;

/** Runs several seeds, of both runs, and says how sure their means are; a later call takes the place of this one. */
export async function measure(): Promise<void> {
  const turn = ++measurement;
  const seeds = Array.from({ length: seedCount.value }, (_, i) => String(i + 1));
  const [a, b] = runs.value;
  measuring.value = true;
  let found: [Intervals | null, Intervals | null] = [null, null];
  for (const [which, run] of [a, b].entries()) {
    if (!run || turn !== measurement) continue;
    const take = (value: Intervals) => {
      if (turn !== measurement) return;
      found = which === 0 ? [value, null] : [found[0], value];
      // What a change replaces stays in sight until the new runs are done.
      if (value.done === seeds.length || !follow.value) intervals.value = found;
    };
    const bounds = session?.bounds(run.opened.toml);
    const all = await attempt((engine) => engine.intervals(run.opened.toml, seeds, take));
    const derived = await bounds;
    if (all && derived) take({ ...all, bounds: derived });
  }
  if (turn === measurement) measuring.value = false;
}

/** A file of this run that the engine writes. */
export async function exported(kind: "samples" | "events" | "outcome", which: Which): Promise<string | null> {
  return attempt((engine) => engine.exported(kind, which));
}

let written: string | null = null;

function writeAddress(hash: string): void {
  written = hash;
  history.replaceState(null, "", hash === "" ? location.pathname + location.search : hash);
}

/** The page's state. */
export function state(): PageState {
  return {
    toml: base[0],
    compare: base[1],
    seed: seed.value,
    atS: time.value,
    changes: [...changes.value],
    speed: speed.value,
    link: linkName.value,
    panel: panel.value,
    gallery: entry.value?.id ?? "",
    file: "",
  };
}

/** A link to all this, also in the address bar; `null` if it would be too long. */
export async function share(): Promise<string | null> {
  if (changes.value.length > MOST_CHANGES) {
    say(`More than ${MOST_CHANGES} changes are too many for a link; restart, or export the scenario as TOML.`, true);
    return null;
  }
  const hash = await encodeState(state());
  if (hash.length > MOST_LINK) {
    say(`The scenario is too long for a link (${hash.length} characters); export it as TOML.`, true);
    return null;
  }
  writeAddress(hash);
  return new URL(hash, location.href).href;
}

/** The page as this state says. */
async function restore(wanted: PageState): Promise<void> {
  linkName.value = wanted.link;
  entry.value = gallery.value.find(({ id }) => id === wanted.gallery) ?? null;
  speed.value = wanted.speed;
  written = location.hash;
  panel.value = wanted.panel;
  beginAnother();
  if (!(await open(wanted.toml, { seed: wanted.seed, compare: wanted.compare }))) {
    panel.value = "scenario";
    return;
  }
  const atS = Math.min(wanted.atS, first.value?.opened.durationS ?? 0);
  for (const change of wanted.changes) {
    if (change.atS > 0) await attempt((engine) => engine.seek(Math.min(change.atS, atS)));
    const changed = await setIn(change.which, change.path, change.value);
    if (!changed) return;
    took(change.which, changed);
    if (changed.how === "live") changes.value = [...changes.value, change];
  }
  if (atS > 0) await attempt((engine) => engine.seek(atS));
  written = location.hash;
  if (wanted.file === "") {
    say(`Opened from a link, at ${atS.toFixed(2)} s, paused.`);
    return;
  }
  say(`Opened: ${wanted.file}.`);
  await play();
}
