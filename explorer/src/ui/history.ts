// What the engine has reported of one run so far, and what charts derive from it.

import { type Column, EVENT, EVENT_FIELDS, type Histogram, type Opened, type RunFrame } from "../protocol.ts";

/** A drop or a mark. */
export interface Signal {
  id: number;
  time: number;
  link: number;
  flow: number;
  color: 0 | 1 | 2;
  reason: number;
  isMark: boolean;
}

/** As many of the latest drops and marks are listed. */
const MOST_SIGNALS = 400;

/** One run, as reported so far. */
export class History {
  times: number[] = [];
  columns: number[][];
  signals: Signal[] = [];
  /** The waits at each link: those of all packets, and those of each class that its queue distinguishes. */
  histograms = new Map<number, Histogram[]>();
  flight: Float32Array = new Float32Array();
  waiting: Float32Array = new Float32Array();

  constructor(readonly opened: Opened) {
    this.columns = opened.columns.map(() => []);
  }

  /** The next part of the run; `fresh` begins at time zero. */
  append(frame: RunFrame, fresh: boolean): void {
    if (fresh) {
      this.times = [];
      this.columns = this.opened.columns.map(() => []);
      this.signals = [];
      this.histograms.clear();
    }
    const { times, values } = frame.samples;
    const width = this.columns.length;
    for (let row = 0; row < times.length; row++) {
      this.times.push(times[row] ?? 0);
      for (let column = 0; column < width; column++)
        this.columns[column]?.push(values[row * width + column] ?? Number.NaN);
    }
    const events = frame.events;
    const first = Math.max(0, events.length / EVENT_FIELDS - MOST_SIGNALS);
    for (let i = first * EVENT_FIELDS; i + EVENT_FIELDS <= events.length; i += EVENT_FIELDS) {
      this.signals.push({
        id: events[i + EVENT.id] ?? 0,
        time: events[i + EVENT.time] ?? 0,
        link: events[i + EVENT.link] ?? 0,
        flow: events[i + EVENT.flow] ?? 0,
        color: (events[i + EVENT.color] ?? 0) as 0 | 1 | 2,
        reason: events[i + EVENT.reason] ?? 0,
        isMark: (events[i + EVENT.isMark] ?? 0) === 1,
      });
    }
    if (this.signals.length > MOST_SIGNALS) this.signals.splice(0, this.signals.length - MOST_SIGNALS);
    for (const histogram of frame.histograms) {
      if (histogram.class === null) this.histograms.set(histogram.link, [histogram]);
      else this.histograms.get(histogram.link)?.push(histogram);
    }
    this.flight = frame.flight;
    this.waiting = frame.waiting;
  }

  /** The values of the first column that this is true of. */
  values(is: (column: Column) => boolean): number[] | null {
    const index = this.opened.columns.findIndex(is);
    return index < 0 ? null : (this.columns[index] ?? null);
  }

  /** The sum of all columns that this is true of. */
  sum(is: (column: Column) => boolean): number[] | null {
    let total: number[] | null = null;
    this.opened.columns.forEach((column, index) => {
      if (!is(column)) return;
      const values = this.columns[index] ?? [];
      if (total === null) total = values.slice();
      else for (let i = 0; i < values.length; i++) total[i] = (total[i] ?? 0) + (values[i] ?? 0);
    });
    return total;
  }
}

/** The rate of a count: its differences over `window` seconds, a second. */
export function rate(times: number[], counts: number[], window: number): (number | null)[] {
  const rates: (number | null)[] = new Array(counts.length);
  let from = 0;
  for (let i = 0; i < counts.length; i++) {
    const now = times[i] ?? 0;
    while (from < i - 1 && (times[from + 1] ?? 0) <= now - window) from++;
    const elapsed = now - (times[from] ?? 0);
    rates[i] = i === 0 || elapsed <= 0 ? null : Math.max(0, ((counts[i] ?? 0) - (counts[from] ?? 0)) / elapsed);
  }
  return rates;
}

/** How much a count has grown since this time. */
export function growth(times: number[], counts: number[] | null, since: number): number {
  if (!counts || counts.length === 0) return 0;
  let first = times.findIndex((time) => time >= since);
  if (first < 0) first = counts.length - 1;
  return (counts[counts.length - 1] ?? 0) - (since <= 0 ? 0 : (counts[first] ?? 0));
}

/** The mean of values since this time; `null` without any. */
export function mean(times: number[], values: number[] | null, since: number): number | null {
  if (!values) return null;
  let total = 0;
  let count = 0;
  for (let i = values.length - 1; i >= 0 && (times[i] ?? 0) >= since; i--) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    total += value;
    count++;
  }
  return count === 0 ? null : total / count;
}

/** The share of packets that waited no longer, in percent: at the longest wait of each bucket, and at the upper end of an empty one. */
export function cumulative(histogram: Histogram): { upperMs: number[]; percent: number[] } {
  const total = histogram.counts.reduce((sum, count) => sum + count, 0);
  const upperMs: number[] = [0];
  const percent: number[] = [0];
  let below = 0;
  for (let i = 0; i < histogram.counts.length && below < total; i++) {
    const count = histogram.counts[i] ?? 0;
    const upper = (count > 0 ? histogram.longestS[i] : histogram.upperS[i]) ?? 0;
    below += count;
    upperMs.push(upper * 1000);
    percent.push((100 * below) / total);
  }
  return { upperMs, percent };
}

/** The least delay that at least this share of packets does not exceed (nearest rank), as the longest in its bucket, in ms; `null`
 * without packets. */
export function quantile(histogram: Histogram | undefined, share: number): number | null {
  if (!histogram) return null;
  const total = histogram.counts.reduce((sum, count) => sum + count, 0);
  const rank = Math.max(1, Math.ceil(share * total));
  let below = 0;
  for (let i = 0; i < histogram.counts.length; i++) {
    below += histogram.counts[i] ?? 0;
    if (below >= rank) return (histogram.longestS[i] ?? 0) * 1000;
  }
  return null;
}
