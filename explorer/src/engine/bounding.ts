/** Bounds of scenarios, in a worker of their own: neither a long derivation nor a fault of one holds up the run. */

import type { Bounds } from "../protocol.ts";
import type { Runner } from "./seeds.ts";

/** A derivation that takes longer than this is given up. */
const MOST_MS = 10_000;

/** No bounds, for this reason. */
function none(failure: string): Bounds {
  return { links: [], flows: [], failure };
}

/** Derives bounds, one scenario after the other. */
export class Bounding {
  readonly #start: () => Runner;
  readonly #mostMs: number;
  #runner: Runner | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(start: () => Runner, mostMs = MOST_MS) {
    this.#start = start;
    this.#mostMs = mostMs;
  }

  /** The bounds of a scenario; where that fails, they say why there are none. */
  derive(toml: string): Promise<Bounds> {
    const derived = this.#last.then(() => this.#derive(toml));
    this.#last = derived;
    return derived;
  }

  async #derive(toml: string): Promise<Bounds> {
    this.#runner ??= this.#start();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<Bounds>((resolve) => {
      const why = `they take longer than ${this.#mostMs / 1000} s here; \`perhop bound\` derives them`;
      timer = setTimeout(() => {
        this.close();
        resolve(none(why));
      }, this.#mostMs);
    });
    try {
      return await Promise.race([this.#runner.ask<Bounds>({ do: "bounds", toml }), late]);
    } catch {
      // Its module cannot be used any more.
      this.close();
      return none("perhop is at fault: they cannot be derived");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the worker; the next derivation starts another. */
  close(): void {
    this.#runner?.close();
    this.#runner = null;
  }
}
