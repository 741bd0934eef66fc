// The bounds of the runs that the page shows. They follow each change of a text, beside the runs, which do not wait for them.

import { computed, effect, signal } from "@preact/signals";
import type { Bounds, Session, Which } from "../protocol.ts";
import { runs } from "./signals.ts";

/** The bounds of each run's scenario; null while they are being derived. */
export const bounds = signal<readonly [Bounds | null, Bounds | null]>([null, null]);

/** How long bounds of the text before a change stay in sight until those of the new one have come, in ms. */
const STAY_MS = 300;

/** Keeps the bounds of both runs up to date. Of several changes while others are derived, only the last counts. */
export function followBounds(engine: Pick<Session, "bounds">): void {
  for (const which of [0, 1] as const) {
    const text = computed(() => runs.value[which]?.opened.toml ?? null);
    let derived: string | null = null;
    let busy = false;
    effect(() => {
      void text.value;
      if (!busy) void follow();
    });
    async function follow(): Promise<void> {
      busy = true;
      while (text.peek() !== derived) {
        const toml = text.peek();
        const gone = setTimeout(() => put(which, null), STAY_MS);
        const found = toml === null ? null : await engine.bounds(toml);
        clearTimeout(gone);
        derived = toml;
        put(which, found);
      }
      busy = false;
    }
  }
}

function put(which: Which, found: Bounds | null): void {
  const [a, b] = bounds.peek();
  bounds.value = which === 0 ? [found, b] : [a, found];
}
