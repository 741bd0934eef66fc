/**
 * What the page and the engine (a worker with perhop as WebAssembly) say to each other.
 *
 * The page talks to a `Session` (`engine/session.ts`), which talks to the worker. Times are seconds of the simulation, rates bit/s, sizes
 * bytes unless a field says otherwise. Colors are numbers: 0 green, 1 yellow, 2 red.
 */

/** A run that the page shows: the scenario itself, or what it is compared with, on the same seed. */
export type Which = 0 | 1;

/** Something wrong with a scenario, in the program's own words. Show with `textContent` only. */
export interface Problem {
  /** What is wrong, and what would be right. */
  text: string;
  /** The key that it is about, such as `links.uplink.queue.limit`; empty if there is none. */
  key: string;
  /** Line of the TOML text from 1; null if the place is unknown. */
  line: number | null;
  /** Column from 1 and the number of characters to underline; null likewise. */
  column: number | null;
  length: number | null;
}

/** A direction of a link, in the order of the network. */
export interface LinkInfo {
  name: string;
  /** Routers by index into `nodes`. */
  from: number;
  to: number;
  rateBps: number;
  delayS: number;
  /** It has a queue under an AQM, so it has columns, drops and a histogram. */
  measured: boolean;
  /** The AQM and the scheduler of its queue, such as `rio-plus-out`; null without. */
  aqm: string | null;
  scheduler: string | null;
  /** Room of the queue; null if unlimited or unknown. */
  limitPackets: number | null;
  limitBytes: number | null;
  /** Horizontal lines for charts: thresholds, targets, the limit. */
  lines: Line[];
}

/** A constant that a chart shows as a line. */
export interface Line {
  /** Such as `in min`, `max`, `target`, `limit`. */
  name: string;
  /** The key of the scenario that sets it. */
  key: string;
  unit: "packets" | "bytes" | "s";
  value: number;
  /** The name of the gauge that is compared with it, such as `average total`; null if it is the queue itself. */
  gauge: string | null;
}

/** All flows of a group, or of its requests. */
export interface ClassInfo {
  /** `bulk`. */
  name: string;
  /** The number of its first flow; the others follow. */
  first: number;
  /** How many it has. */
  flows: number;
  from: number;
  to: number;
  /** `tcp newreno`, `udp cbr`, … */
  transport: string;
  /** The contracted rate of all of them; null without a profile. */
  profileBps: number | null;
  /** Whether the row is of flows that come and go, which have no window. */
  population: boolean;
}

/** A flow that is sampled by itself. */
export interface FlowInfo {
  /** `bulk/0`. */
  name: string;
  /** Index into `classes`. */
  class: number;
}

/** A column of `Samples`. Counts are since the beginning of the run (the page takes differences). */
export interface Column {
  kind:
    | "queue" // packets that wait (link)
    | "bytes" // bytes that wait (link)
    | "delay" // bytes that wait / rate, in s (link)
    | "gauge" // of the AQM or scheduler, `name` (link)
    | "arrived" // packets, `color` (link)
    | "sent" // packets, `color` (link)
    | "dropped" // packets: by `color` with the name "all", and by reason (`name`) with color null (link)
    | "marked" // packets marked with ECN, likewise (link)
    | "sentBytes" // bytes that left (link)
    | "capacity" // bytes that could have left: the integral of the rate (link)
    | "delivered" // bytes delivered (flow, class)
    | "window" // packets; NaN if none (flow)
    | "rtt" // smoothed round-trip time in s; NaN before the first sample (flow)
    | "flowDropped" // packets of the flow dropped by queues (flow)
    | "active" // time in which TCP had begun and not ended, in s (flow)
    | "receiverLimited"; // of that, time in which the receiver's window was full, in s (flow)
  /** Gauge or reason; else equal to kind. */
  name: string;
  unit: "packets" | "bytes" | "s" | "";
  /** Index into `links` or `flows`; otherwise null. */
  link: number | null;
  flow: number | null;
  /** Index into `classes`, where this is the value of all its flows together. */
  class: number | null;
  color: 0 | 1 | 2 | null;
}

/** A parameter that one can set, from the schema. */
export interface Control {
  /** Dotted path as in sweeps: `links.uplink.queue.thresholds.max_p`, `flows.bulk.count`. */
  path: string;
  /** The last parts of the path, for display. */
  label: string;
  /** From the schema's description. */
  doc: string;
  /** For grouping: `links.uplink`, `flows.bulk`, `run`. */
  group: string;
  kind: "number" | "choice" | "switch" | "text";
  /**
   * As it is now: number for "number" (in `unit`), boolean for "switch", else text. Null where the text leaves the key out and its
   * default is no plain value.
   */
  value: number | boolean | string | null;
  /** The TOML value as it is written, or the default: `"20Mbps"`. Where the value is null: an example. */
  text: string;
  /** Whether the text gives it; otherwise this is the default. */
  isSet: boolean;
  /** What acts where the text leaves the key out: `15 ms`, `the target`. Empty if it cannot be left out. */
  default: string;
  /** For numbers: `Mbps`, `ms`, `p`, … or empty. */
  unit: string;
  /** For numbers: the slider's range; within the hard bounds of the schema. */
  min: number;
  max: number;
  step: number;
  /** The slider moves by factors. */
  log: boolean;
  integer: boolean;
  /** For choices: the names. */
  choices: string[];
  /** It can change during a run; otherwise the run starts again on the same seed, and catches up. */
  live: boolean;
}

/** A scenario that has been read and is at time zero. */
export interface Opened {
  title: string;
  /** The text that runs. */
  toml: string;
  /** As decimal digits: 64 bits. */
  seed: string;
  durationS: number;
  warmupS: number;
  nodes: string[];
  links: LinkInfo[];
  classes: ClassInfo[];
  /** The flows that are sampled one by one: of each class the first ones. */
  flows: FlowInfo[];
  /** Packets differ in color: flows have profiles or colors of their own, or links meters. */
  colored: boolean;
  /** How far samples are apart. */
  sampleS: number;
  columns: Column[];
  controls: Control[];
  /** Names of the reasons, by number in drops. */
  reasons: string[];
  /** The program's warnings about this scenario. */
  notices: Problem[];
}

/** Samples at multiples of `sampleInterval`, row by row: `values[row * columns + column]`, with `times[row]`. */
export interface Samples {
  times: Float64Array;
  values: Float64Array;
}

/**
 * Packets on links at the time of the frame, four numbers each: link, progress 0…1, color, flow. Sampled if there are many. Packets that go
 * back to the sender, such as ACKs, have `-1 - flow` in place of the flow.
 */
export type Flight = Float32Array;

/** Drops and marks since the last frame, `EVENT_FIELDS` numbers each. */
export type Events = Float64Array;
export const EVENT_FIELDS = 7;
/** Places in an event: its number (for `explain`), time, link, flow, color, reason, 0 for a drop and 1 for a mark. */
export const EVENT = { id: 0, time: 1, link: 2, flow: 3, color: 4, reason: 5, isMark: 6 } as const;

/** What a link's packets waited, since the end of the warm-up: `counts[i]` packets up to `upperS[i]`, the longest of them `longestS[i]`. */
export interface Histogram {
  link: number;
  /** The class of packets that the link's queue distinguishes (the first 6 of them follow all packets); null for all packets. */
  class: string | null;
  upperS: Float64Array;
  longestS: Float64Array;
  counts: Float64Array;
}

/** One run's part of a frame. */
export interface RunFrame {
  samples: Samples;
  events: Events;
  /** Events that this frame leaves out because there were too many. */
  eventsLeftOut: number;
  flight: Flight;
  /** At a lower rate than frames; empty in between. */
  histograms: Histogram[];
  /** Packets waiting by color for each link whose queue is sampled (the first 16 with a queue): three numbers a link, in their order. */
  waiting: Float32Array;
}

/** What the engine sends while it runs, at most 60 times a second, and after each step, seek and set. */
export interface Frame {
  /** The page ignores frames of an earlier `generation`: each restart begins a new one at time zero. */
  generation: number;
  timeS: number;
  ended: boolean;
  /** Forget earlier samples: these begin at time zero. */
  fresh: boolean;
  /** Wall time the engine took for this frame in ms, and simulated seconds per wall second at the moment. */
  costMs: number;
  runs: RunFrame[];
}

/** How a change acted. */
export interface Changed {
  toml: string;
  /** `live`: the run went on; `restarted`: it began again and caught up to the time it was at. */
  how: "live" | "restarted";
  /** Why it could not act live; empty if it did. */
  why: string;
  /** The scenario as it is now; lines, controls and columns may differ. */
  opened: Opened;
  generation: number;
}

/** What going to a time did. */
export interface Sought {
  /** Changes made later than that time, which are undone; none when going on. */
  undone: number;
  /** The runs as they are by then, if anything was undone; else empty. */
  opened: Opened[];
}

/** A number that decided; `text` has a word in its place. */
export interface Fact {
  name: string;
  value: number;
  unit: string;
  text?: string;
}

/** Why a packet was dropped or marked. */
export interface Explanation {
  /** The event asked for. */
  id: number;
  timeS: number;
  link: string;
  flow: string;
  color: 0 | 1 | 2;
  reason: string;
  aqm: string;
  /** One sentence. */
  sentence: string;
  /** Numbers that decided, in order: `average`, `min`, `max`, `p`, `random number`, … */
  facts: Fact[];
  /** The rule as pseudo-code, and which lines (from 0) decided. */
  rule: string[];
  decisive: number[];
  /** Where the rule comes from: paper and figure, or RFC and section. */
  source: string;
}

/** A quantity over several seeds: mean of the runs and 95 % interval by Student's t. */
export interface Interval {
  /** `links.uplink.loss`, `flows.bulk.throughput`, … */
  name: string;
  unit: string;
  mean: number;
  low: number;
  high: number;
  /** One value for each seed, in order; null where the run has none. */
  values: (number | null)[];
}

export interface Intervals {
  seeds: string[];
  /** Of these, finished so far; the last message has all. */
  done: number;
  rows: Interval[];
  wallMs: number;
  /** What no run exceeds, with the last message. */
  bounds?: Bounds;
}

/** The longest that a delay can be in any run, or why nothing bounds it. */
export type DelayBound = { at_most_s: number } | { reason: string };

/** A class of packets or of flows with its bound. */
export interface Bounded {
  name: string;
  delay: DelayBound;
}

/** Bounds of the wait at a link: of any packet, and of each class that its queue distinguishes; no class where it distinguishes none. */
export interface LinkBounds extends Bounded {
  classes: Bounded[];
}

/** What no run of a scenario exceeds, with any seed and the warm-up included, while its values stay as they are. */
export interface Bounds {
  /** Links with a queue. */
  links: LinkBounds[];
  /** Classes of flows, with the largest one-way delay of their flows. */
  flows: Bounded[];
  /** Why none could be derived; empty if they are. */
  failure: string;
}

/** A scenario of the gallery (`gallery/index.json`). */
export interface GalleryEntry {
  id: string;
  title: string;
  /** What to look at, in a sentence or two. */
  look: string;
  /** The link to show first. */
  link: string;
  /** Controls to show first, by path. */
  controls: string[];
  /** A scenario to compare with at once: a `set` of path and TOML value on the same text; absent if none. */
  compare?: { path: string; value: string; label: string }[];
  /** Simulated seconds per second at the start. */
  speed: number;
  source: string;
}

/** Data files that the engine writes. */
export type ExportKind = "samples" | "events" | "outcome";

/** Page to worker. Every request is answered by a `Reply` with its `id`. */
export type Request =
  | { id: number; do: "open"; toml: string; seed: string; atS?: number }
  | { id: number; do: "play"; speed: number }
  | { id: number; do: "pause" }
  | { id: number; do: "step"; link: number | null } // to the next packet that the link (or any) admits, drops or marks
  | { id: number; do: "seek"; timeS: number }
  | { id: number; do: "set"; path: string; value: string; which: Which } // `value` in TOML
  | { id: number; do: "text"; toml: string; which: Which } // the whole text; goes on live if it can
  | { id: number; do: "compare"; toml: string | null }
  | { id: number; do: "explain"; event: number; which: Which }
  | { id: number; do: "export"; kind: ExportKind; which: Which }
  | { id: number; do: "check"; toml: string } // problems of a text, nothing changes
  | { id: number; do: "edit"; toml: string; path: string; value: string } // the text with another value, nothing changes
  | { id: number; do: "intervals"; rows: number[][] } // mean and ends of the interval of each row
  | { id: number; do: "measure"; toml: string; seed: string } // one whole run, for intervals
  | { id: number; do: "bounds"; toml: string } // what no run of it exceeds
  | { id: number; do: "fingerprint"; toml: string; seed: string };

export type Reply = { id: number; ok: true; value: unknown } | { id: number; ok: false; problem: Problem };

/** Page to worker: it has taken a frame. */
export type Taken = "taken";

/** Worker to page, unasked. */
export type Notice = { frame: Frame } | { ready: { version: string } } | { fault: string };

/** What the page uses. Each promise is rejected with a `ScenarioProblem` (it has `problem: Problem`) if the scenario is wrong. */
export interface Session {
  /** Called with every frame. */
  onframe: (frame: Frame) => void;
  /** The engine failed, which is our fault: a sentence. */
  onfault: (text: string) => void;
  open(toml: string, seed: string, atS?: number): Promise<Opened>;
  play(speed: number): Promise<void>;
  pause(): Promise<void>;
  step(link: number | null): Promise<void>;
  /** Goes on up to this time. Back to an earlier one: the runs begin again, and changes made by then act again at their times. */
  seek(timeS: number): Promise<Sought>;
  set(path: string, value: string, which?: Which): Promise<Changed>;
  text(toml: string, which?: Which): Promise<Changed>;
  compare(toml: string | null): Promise<Opened | null>;
  explain(event: number, which?: Which): Promise<Explanation>;
  /** CSV for samples and events, JSON for the outcome. */
  exported(kind: ExportKind, which?: Which): Promise<string>;
  check(toml: string): Promise<Problem | null>;
  /** The text with another value in TOML at a path; nothing changes. */
  edited(toml: string, path: string, value: string): Promise<string>;
  /** Runs whole runs of these seeds in other workers; called again, it gives up the earlier request. */
  intervals(toml: string, seeds: string[], progress?: (so_far: Intervals) => void): Promise<Intervals>;
  /** What no run of this text exceeds; derived in another worker, so that no run waits for it. */
  bounds(toml: string): Promise<Bounds>;
  close(): void;
}

/** A rejected promise: the scenario, not the program, is wrong. */
export class ScenarioProblem extends Error {
  constructor(readonly problem: Problem) {
    super(problem.text);
  }
}
