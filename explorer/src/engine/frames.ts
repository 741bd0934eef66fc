/** A frame from the engine's header and its list of numbers. */

import { EVENT_FIELDS, type Frame, type Histogram, type RunFrame } from "../protocol.ts";

interface RunHeader {
  rows: number;
  events: number;
  eventsLeftOut: number;
  flight: number;
  waiting: number;
  histograms: { link: number; class: string | null; bins: number }[];
}

/** What the engine says of a frame. */
export interface Header {
  generation: number;
  timeS: number;
  ended: boolean;
  fresh: boolean;
  runs: RunHeader[];
}

/** Puts a frame together; `columns` says how many columns the samples of each run have. */
export function frameOf(header: Header, numbers: Float64Array, columns: number[], costMs: number): Frame {
  let at = 0;
  const next = (count: number): Float64Array => {
    at += count;
    return numbers.slice(at - count, at);
  };
  const runs = header.runs.map((run, which): RunFrame => {
    const samples = { times: next(run.rows), values: next(run.rows * (columns[which] ?? 0)) };
    const events = next(run.events * EVENT_FIELDS);
    const flight = Float32Array.from(next(run.flight * 4));
    const waiting = Float32Array.from(next(run.waiting * 3));
    const histograms = run.histograms.map(
      ({ bins, ...of }): Histogram => ({ ...of, upperS: next(bins), longestS: next(bins), counts: next(bins) }),
    );
    return { samples, events, eventsLeftOut: run.eventsLeftOut, flight, waiting, histograms };
  });
  const { generation, timeS, ended, fresh } = header;
  return { generation, timeS, ended, fresh, costMs, runs };
}

/** The buffers of a frame, which a worker hands over instead of copying them. */
export function buffersOf(frame: Frame): ArrayBuffer[] {
  const arrays = frame.runs.flatMap(({ samples, events, flight, waiting, histograms }) => [
    samples.times,
    samples.values,
    events,
    flight,
    waiting,
    ...histograms.flatMap(({ upperS, longestS, counts }) => [upperS, longestS, counts]),
  ]);
  return arrays.map((array) => array.buffer as ArrayBuffer);
}
