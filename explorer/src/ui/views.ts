// What the charts show of a run: from columns of samples to lines, thresholds and rates.

import type { Column, Line as Level_, LinkInfo, Opened } from "../protocol.ts";
import type { Level, Line } from "./chart.tsx";
import { percent } from "./format.ts";
import { growth, type History, mean, rate } from "./history.ts";
import { DASHES, type Palette } from "./palette.ts";

const COLOR_NAMES = ["green", "yellow", "red"] as const;
/** Drop precedences as the papers call them, where only two are in use. */
const IN_OUT = ["IN", "OUT", "OUT"] as const;
/** Counts of all reasons, by color. */
const ALL = "all";

/** What a chart needs. */
export interface View {
  unit: string;
  x: number[];
  lines: Line[];
  levels?: Level[];
}

const SCALE = { packets: 1, bytes: 1e-3, s: 1e3, "": 1 } as const;
const UNIT = { packets: "packets", bytes: "kB", s: "ms", "": "" } as const;

export type QueueUnit = keyof typeof SCALE & Level_["unit"];

/** The unit of the thresholds of all these queues, other than their limits; packets where they differ, so that charts compare. */
export function queueUnit(links: readonly (LinkInfo | undefined)[]): QueueUnit {
  const units = links.flatMap((link) =>
    link ? [link.lines.find((line) => line.name !== "limit")?.unit ?? "packets"] : [],
  );
  const [first = "packets"] = units;
  return units.every((unit) => unit === first) ? first : "packets";
}

/** The queue in this unit, its averages, and the thresholds that are in it. */
export function queue(history: History, link: number, unit: QueueUnit, colors: Palette): View | null {
  const info = history.opened.links[link];
  if (!info) return null;
  const kind = unit === "s" ? "delay" : unit === "bytes" ? "bytes" : "queue";
  const scale = SCALE[unit];
  const values = history.values((column) => column.kind === kind && column.link === link);
  if (!values) return null;
  const scaled = (of: number[]) => (scale === 1 ? of : of.map((value) => value * scale));
  const lines: Line[] = [
    {
      label: unit === "s" ? "queueing delay" : "queue",
      values: scaled(values),
      color: colors.line,
      width: 1,
      filled: true,
    },
  ];
  const tint = new Map<string, string>();
  const compared = comparedWith(info, unit);
  for (const [index, column] of history.opened.columns.entries()) {
    if (column.kind !== "gauge" || column.link !== link || !(column.unit === unit || compared.has(column.name)))
      continue;
    const color = colors.series[tint.size % colors.series.length] ?? colors.ink;
    const dash = DASHES[tint.size % DASHES.length] ?? [];
    tint.set(column.name, color);
    lines.push({ label: column.name, values: scaled(history.columns[index] ?? []), color, dash, width: 2.25 });
  }
  const top = Math.max(...values.slice(-4000), 0) * scale;
  const levels = info.lines
    .filter((line) => line.unit === unit)
    .filter((line) => line.name !== "limit" || line.value * scale < top * 1.6)
    .map((line): Level => level(line, scale, (line.gauge && tint.get(line.gauge)) || colors.muted));
  return { unit: UNIT[unit], x: history.times, lines, levels };
}

/** The gauges that this link's mechanism compares with thresholds in this unit, or in any: they are in that unit. */
function comparedWith(link: LinkInfo, unit?: QueueUnit): Set<string> {
  const lines = link.lines.filter((line) => unit === undefined || line.unit === unit);
  return new Set(lines.flatMap((line) => (line.gauge === null ? [] : [line.gauge])));
}

function level(line: Level_, scale: number, color: string): Level {
  return { label: line.name, value: line.value * scale, color, dash: line.name === "limit" ? [2, 2] : [6, 4] };
}

/** Gauges without a unit, such as probabilities. */
export function gauges(history: History, link: number, colors: Palette): View | null {
  const lines: Line[] = [];
  const info = history.opened.links[link];
  const compared = info ? comparedWith(info) : new Set<string>();
  for (const [index, column] of history.opened.columns.entries()) {
    if (column.kind !== "gauge" || column.link !== link || column.unit !== "" || compared.has(column.name)) continue;
    const at = lines.length;
    const color = colors.series[at % colors.series.length] ?? colors.ink;
    lines.push({
      label: column.name,
      values: history.columns[index] ?? [],
      color,
      dash: DASHES[at % DASHES.length] ?? [],
    });
  }
  return lines.length === 0 ? null : { unit: "", x: history.times, lines };
}

/** How many packets of each color have come to this link. */
export function arrivedByColor(history: History, link: number): number[] {
  return [0, 1, 2].map(
    (of) =>
      history.values(({ kind, link: at, color }) => kind === "arrived" && at === link && color === of)?.at(-1) ?? 0,
  );
}

/** What the colors of packets are called at this link: IN and OUT where there are no three. */
export function colorNames(history: History, link: number): readonly string[] {
  const [, yellow = 0, red = 0] = arrivedByColor(history, link);
  return yellow > 0 && red > 0 ? COLOR_NAMES : IN_OUT;
}

/** Drops and marks a second, by reason. */
export function losses(history: History, link: number, colors: Palette): View {
  const lines: Line[] = [];
  const reasons: string[] = [];
  history.opened.columns.forEach((column, index) => {
    if ((column.kind !== "dropped" && column.kind !== "marked") || column.link !== link || column.name === ALL) return;
    const counts = history.columns[index] ?? [];
    const total = counts.at(-1) ?? 0;
    if (total === 0) return;
    if (!reasons.includes(column.name)) reasons.push(column.name);
    const at = reasons.indexOf(column.name);
    const isMark = column.kind === "marked";
    lines.push({
      label: `${isMark ? "marked" : "dropped"}: ${column.name}`,
      values: rate(history.times, counts, 1),
      color: isMark ? colors.mark : at === 0 ? colors.drop : (colors.series[at % colors.series.length] ?? colors.drop),
      dash: DASHES[at % DASHES.length] ?? [],
      note: `${total.toLocaleString("en")} in all`,
    });
  });
  return { unit: "packets/s", x: history.times, lines };
}

/** Of the packets of each color, how many were dropped, as a sentence; empty where one color comes only. */
export function lossesByColor(history: History, link: number): string {
  const arrived = arrivedByColor(history, link);
  if (arrived.filter((count) => count > 0).length < 2) return "";
  const names = colorNames(history, link);
  const parts = arrived.flatMap((count, color) => {
    if (count === 0) return [];
    const dropped =
      history
        .values(
          ({ kind, link: at, color: of, name }) => kind === "dropped" && at === link && of === color && name === ALL,
        )
        ?.at(-1) ?? 0;
    return [`${names[color]} ${percent(dropped / count)}`];
  });
  return `Dropped so far, by drop precedence: ${parts.join(", ")}.`;
}

/** The number of a flow's class. */
export function classOf(opened: Opened, flow: number): number {
  return opened.classes.findLastIndex(({ first }) => first <= flow);
}

/** The name of a flow by its number, which is not only that of a sampled one. */
export function flowName(opened: Opened, flow: number): string {
  const of = opened.classes[classOf(opened, flow)];
  return of ? `${of.name}/${flow - of.first}` : "";
}

/** The color and the dash of each class. */
export function classStyle(at: number, colors: Palette): { color: string; dash: readonly number[] } {
  return { color: colors.series[at % colors.series.length] ?? colors.ink, dash: DASHES[at % DASHES.length] ?? [] };
}

/** The throughput of each class, of all its flows, and what its profiles are. */
export function throughput(history: History, colors: Palette): View {
  const lines: Line[] = [];
  const levels: Level[] = [];
  history.opened.classes.forEach(({ name, flows, profileBps }, at) => {
    const style = classStyle(at, colors);
    const delivered = history.values((column) => column.kind === "delivered" && column.class === at);
    if (!delivered) return;
    const each = flows > 1 ? ` (${flows} flows)` : "";
    const mbps = rate(history.times, delivered, 1).map((value) => (value === null ? null : (value * 8) / 1e6));
    lines.push({ label: `${name}${each}`, values: mbps, color: style.color, dash: style.dash });
    if (profileBps !== null)
      levels.push({
        label: `profile of ${name}`,
        value: profileBps / 1e6,
        color: style.color,
        dash: style.dash.length ? style.dash : [5, 4],
      });
  });
  return { unit: "Mbit/s", x: history.times, lines, levels };
}

/** The windows of flows: at most so many lines, those of each class in its color. */
export function windows(history: History, colors: Palette): View | null {
  const lines: Line[] = [];
  const { classes, flows } = history.opened;
  const each = Math.max(1, Math.floor(16 / Math.max(1, classes.length)));
  classes.forEach((of, at) => {
    const style = classStyle(at, colors);
    const drawn: Line[] = [];
    flows.forEach((flow, index) => {
      if (flow.class !== at || drawn.length === each) return;
      const values = history.values((column) => column.kind === "window" && column.flow === index);
      if (!values || values.every((value) => Number.isNaN(value))) return;
      const note = heldByReceiver(history, index);
      drawn.push({
        label: flow.name,
        values: values.map((value) => (Number.isNaN(value) ? null : value)),
        color: style.color,
        dash: style.dash,
        width: 1.25,
        unlisted: drawn.length > 0,
        ...(note === null ? {} : { note }),
      });
    });
    const [first] = drawn;
    if (first) first.label = of.flows === 1 ? of.name : `${of.name} (${drawn.length} of ${of.flows})`;
    lines.push(...drawn);
  });
  return lines.length === 0 ? null : { unit: "packets", x: history.times, lines };
}

/** Says so if the receiver's window held a flow for more than 5 % of the time so far. */
function heldByReceiver(history: History, flow: number): string | null {
  const last = (kind: Column["kind"]) =>
    history.values((column) => column.kind === kind && column.flow === flow)?.at(-1) ?? 0;
  const share = last("receiverLimited") / last("active");
  return share > 0.05 ? `${percent(share)} of the time limited by its receiver’s window` : null;
}

/** Queueing delay of both runs on one axis, with the targets of their mechanisms. */
export function delayOver(
  histories: (History | null)[],
  links: number[],
  names: string[],
  colors: Palette,
): View | null {
  const longest = histories.reduce((a, b) => ((b?.times.length ?? 0) > (a?.times.length ?? 0) ? b : a), null);
  if (!longest) return null;
  const lines = histories.flatMap((history, which): Line[] => {
    const values = history?.values(({ kind, link }) => kind === "delay" && link === links[which]);
    if (!values) return [];
    return [
      {
        label: names[which] ?? "",
        values: Array.from({ length: longest.times.length }, (_, i) =>
          values[i] === undefined ? null : values[i] * 1000,
        ),
        color: colors.series[which] ?? colors.ink,
        dash: DASHES[which] ?? [],
        width: 1.5,
      },
    ];
  });
  const levels = histories.flatMap((history, which) =>
    (history?.opened.links[links[which] ?? -1]?.lines ?? [])
      .filter(({ unit }) => unit === "s")
      .map((line) => ({
        ...level(line, SCALE.s, colors.series[which] ?? colors.ink),
        label: `${line.name} of ${names[which] ?? ""}`,
      })),
  );
  return { unit: "ms", x: longest.times, lines, levels };
}

/** A few numbers that answer at a glance. */
export interface Figure {
  name: string;
  value: number | null;
  unit: string;
  /** More is worse (`up` is bad) or better; `null` where it depends. */
  good: "more" | "less" | null;
}

/** Key figures of a link over the last `span` seconds of a run. */
export function figures(history: History, link: number, span: number): Figure[] {
  const { times } = history;
  const now = times.at(-1) ?? 0;
  const since = Math.max(0, now - span);
  const of = (kind: string) =>
    history.sum(
      (column) =>
        column.kind === kind &&
        column.link === link &&
        (column.color !== null || kind === "sentBytes" || kind === "capacity"),
    );
  const sent = growth(times, of("sentBytes"), since);
  const capacity = growth(times, of("capacity"), since);
  const arrived = growth(times, of("arrived"), since);
  const delay = mean(
    times,
    history.values(({ kind, link: at }) => kind === "delay" && at === link),
    since,
  );
  const per = (count: number) => (arrived > 0 ? (100 * count) / arrived : null);
  return [
    {
      name: "link utilization",
      value: capacity > 0 ? Math.min(100, (100 * sent) / capacity) : null,
      unit: "%",
      good: "more",
    },
    {
      name: "mean queue",
      value: mean(
        times,
        history.values(({ kind, link: at }) => kind === "queue" && at === link),
        since,
      ),
      unit: "packets",
      good: "less",
    },
    { name: "mean queueing delay", value: delay === null ? null : delay * 1000, unit: "ms", good: "less" },
    { name: "dropped", value: per(growth(times, of("dropped"), since)), unit: "%", good: "less" },
    { name: "marked", value: per(growth(times, of("marked"), since)), unit: "%", good: null },
  ];
}
