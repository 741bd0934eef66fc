/** Whole runs of several seeds, in parallel, and intervals over them. */

import type { Interval, Intervals } from "../protocol.ts";
import type { Asked } from "./session.ts";

/** A worker that runs whole runs. */
export interface Runner {
  ask<T>(asked: Asked): Promise<T>;
  close(): void;
}

/** Name, unit and value of a measure. */
export type Row = [name: string, unit: string, value: number | null];

/** A request was given up for a later one. */
export class GivenUp extends Error {}

/** Runs of the latest request only. */
export class Seeds {
  readonly #start: () => Runner;
  #runners: Runner[] = [];
  #turn = 0;
  #busy = false;
  #giveUp: (reason: Error) => void = () => {};

  constructor(start: () => Runner) {
    this.#start = start;
  }

  /** Runs each seed once; an earlier request that is not finished is given up, and rejected with `GivenUp`. */
  async run(toml: string, seeds: string[], progress?: (soFar: Intervals) => void): Promise<Intervals> {
    const turn = ++this.#turn;
    if (this.#busy) {
      // A run cannot be interrupted, but its worker can.
      this.#giveUp(new GivenUp("a later request took its place"));
      this.close();
    }
    this.#busy = true;
    const given = new Promise<never>((_, reject) => {
      this.#giveUp = reject;
    });
    given.catch(() => {});
    const wanted = Math.max(1, Math.min(seeds.length, (globalThis.navigator?.hardwareConcurrency ?? 2) || 2, 8));
    while (this.#runners.length < wanted) this.#runners.push(this.#start());
    const began = performance.now();
    const results = new Array<Row[] | undefined>(seeds.length);
    let next = 0;
    const work = async (runner: Runner): Promise<void> => {
      for (let mine = next++; mine < seeds.length; mine = next++) {
        results[mine] = await runner.ask<Row[]>({ do: "measure", toml, seed: seeds[mine] ?? "1" });
        if (turn !== this.#turn) return;
        const done = results.filter((result) => result !== undefined).length;
        if (progress && done < seeds.length) {
          // Nobody waits for it: the next run begins at once.
          const tell = (soFar: Intervals) => turn === this.#turn && this.#busy && progress(soFar);
          this.#summary(seeds, [...results], began).then(tell, () => {});
        }
      }
    };
    try {
      await Promise.race([given, Promise.all(this.#runners.slice(0, wanted).map(work))]);
      return await Promise.race([given, this.#summary(seeds, results, began)]);
    } finally {
      if (turn === this.#turn) this.#busy = false;
    }
  }

  async #summary(seeds: string[], results: (Row[] | undefined)[], began: number): Promise<Intervals> {
    const done = results.filter((result): result is Row[] => result !== undefined);
    // A measure that applies in no run, such as the retransmissions of UDP, has no row. One without a value in some runs, such as the
    // completion time of a flow that did not complete, has the mean of the others.
    const rows = (done[0] ?? []).flatMap(([name, unit], place) => {
      const values = done.map((result) => result[place]?.[2] ?? null);
      return values.some((value) => value !== null) ? [{ name, unit, values }] : [];
    });
    const runner = this.#runners[0];
    const ends = await runner?.ask<{ mean: number; low: number | null; high: number | null }[]>({
      do: "intervals",
      rows: rows.map(({ values }) => values.filter((value) => value !== null)),
    });
    const intervals = rows.map((row, place): Interval => {
      const { mean, low, high } = ends?.[place] ?? { mean: Number.NaN, low: null, high: null };
      return { ...row, mean, low: low ?? mean, high: high ?? mean };
    });
    return { seeds, done: done.length, rows: intervals, wallMs: performance.now() - began };
  }

  close(): void {
    for (const runner of this.#runners) runner.close();
    this.#runners = [];
  }
}
