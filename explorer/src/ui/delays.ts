// How long packets wait at a link: the distribution of a run, or of two on one axis, with the bounds that no run exceeds.

import type { Bounds, DelayBound, Histogram } from "../protocol.ts";
import type { Line } from "./chart.tsx";
import { atMost } from "./format.ts";
import { cumulative, quantile } from "./history.ts";
import { DASHES, type Palette } from "./palette.ts";
import type { Upright } from "./uprights.ts";
import type { View } from "./views.ts";

/** A bound farther right than this many times the longest wait is an arrow at the edge: its line would squeeze the curves. */
const FARTHEST = 2;

/** What the legend says of each curve. */
export const FIGURES = ["median, ms", "99 %, ms", "at most, ms"];

/** The waits at a link in a run. */
export interface WaitsOf {
  /** The name of the run; empty where there is one only. */
  name: string;
  link: string;
  /** Those of all packets first. */
  histograms: readonly Histogram[];
  /** Null while they are being derived. */
  bounds: Bounds | null;
  /** When a value was last changed while the run went on; null if none was. */
  changedS: number | null;
}

export interface DelayView extends View {
  xRange: [number, number];
  uprights: Upright[];
  /** Why there is no bound, and what a bound is of. */
  remarks: string[];
}

interface Curve {
  name: string;
  histogram: Histogram;
  /** Null while it is being derived. */
  bound: DelayBound | null;
}

/** The chart of waits: of one run each class that the queue distinguishes beside all packets, of two runs all packets. */
export function delays(waits: readonly WaitsOf[], colors: Palette): DelayView | null {
  const curves = waits.flatMap(curvesOf).filter(({ histogram }) => histogram.counts.some((count) => count > 0));
  if (curves.length === 0) return null;
  const drawn = curves.map((curve) => ({ ...curve, ...cumulative(curve.histogram) }));
  const longest = Math.max(...drawn.flatMap(({ upperMs }) => upperMs));
  const style = (at: number) => ({
    color: colors.series[at % colors.series.length] ?? colors.ink,
    dash: DASHES[at % DASHES.length] ?? [],
  });
  // The bound of all packets is that of one of the classes.
  const isOfAll = drawn.length > waits.length ? 1 : 0;
  const uprights = drawn.flatMap(({ name, bound }, at): Upright[] => {
    if (!bound || "reason" in bound || at < isOfAll) return [];
    const value = bound.at_most_s * 1000;
    const whose = drawn.length > 1 ? `${name} ` : "";
    return [{ label: `${whose}at most ${atMost(value)} ms`, value, color: style(at).color }];
  });
  const near = uprights.map(({ value }) => value).filter((value) => value <= FARTHEST * longest);
  const end = Math.max(longest, ...near.map((value) => value * 1.03), 1e-3);
  const x = [...new Set([...drawn.flatMap(({ upperMs }) => upperMs), end])].sort((a, b) => a - b);
  const lines = drawn.map(({ name, histogram, bound, upperMs, percent }, at): Line => {
    let place = 0;
    const values = x.map((upper) => {
      while (place + 1 < upperMs.length && (upperMs[place + 1] ?? 0) <= upper) place++;
      return percent[place] ?? 100;
    });
    const figures = [...[0.5, 0.99].map((share) => quantile(histogram, share)?.toFixed(1) ?? "–"), figure(bound)];
    const note = figures.map((text, i) => `${FIGURES[i]}: ${text}`).join("; ");
    return { label: name, values, ...style(at), width: 2.25, filled: at === 0, note, figures };
  });
  return { unit: "%", x, lines, xRange: [0, end], uprights, remarks: remarks(waits, drawn) };
}

/** The curves of a run: all packets, and beside no other run each class. */
function curvesOf({ name, link, histograms, bounds }: WaitsOf): Curve[] {
  const known = bounds?.links.find((of) => of.name === link);
  const drawn = name === "" ? histograms : histograms.slice(0, 1);
  const nameOfAll = name || (histograms.length > 1 ? "all packets" : "queueing delay");
  return drawn.map((histogram) => {
    const isAll = histogram.class === null;
    const bounded = isAll ? known : known?.classes.find((of) => of.name === histogram.class);
    const bound = bounded?.delay ?? (bounds && { reason: "" });
    return { name: histogram.class ?? nameOfAll, histogram, bound };
  });
}

/** The text of a bound, which follows the percentiles in the legend. */
function figure(bound: DelayBound | null): string {
  if (bound === null) return "…";
  return "reason" in bound ? "none" : atMost(bound.at_most_s * 1000);
}

function remarks(waits: readonly WaitsOf[], curves: readonly Curve[]): string[] {
  const reasons = new Map<string, string[]>();
  for (const { name, bound } of curves) {
    if (!bound || !("reason" in bound) || bound.reason === "") continue;
    reasons.set(bound.reason, [...(reasons.get(bound.reason) ?? []), name]);
  }
  const of = (names: string[]) => (names.length < curves.length ? ` of ${names.join(", ")}` : "");
  const without = [...reasons].map(([reason, names]) => `No bound${of(names)}: ${reason}.`);
  const failures = new Set(waits.flatMap(({ bounds }) => (bounds?.failure ? [bounds.failure] : [])));
  const failed = [...failures].map((failure) => `No bounds: ${failure}.`);
  const changed = waits.flatMap(({ name, bounds, changedS }) =>
    changedS === null || !bounds || bounds.failure !== ""
      ? []
      : [
          `${name || "This run"} had other values until ${changedS.toFixed(2)} s; its bounds are those of a run with the present values from its beginning.`,
        ],
  );
  return [...without, ...failed, ...changed];
}
