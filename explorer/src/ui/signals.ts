// The state of the page, which components read; the functions of store.ts change it.

import { computed, signal } from "@preact/signals";
import type { Explanation, GalleryEntry, Intervals, Opened, Problem, Which } from "../protocol.ts";
import type { Change, Panel } from "../state.ts";
import type { History } from "./history.ts";

/** The speeds that one can choose, in simulated seconds per second. */
export const SPEEDS = [0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 20, 50];

/** A run on the page. */
export interface Shown {
  opened: Opened;
  history: History;
}

export const runs = signal<readonly [Shown | null, Shown | null]>([null, null]);
/** Counts the scenarios that were opened. */
export const subject = signal(0);
export const gallery = signal<GalleryEntry[]>([]);
/** The scenario of the gallery that is open. */
export const entry = signal<GalleryEntry | null>(null);
export const time = signal(0);
export const playing = signal(false);
export const ended = signal(false);
export const speed = signal(1);
export const seed = signal("1");
export const busy = signal("");
/** Counts up when there is something new to draw. */
export const drawn = signal(0);
export const panel = signal<Panel>("parameters");
/** Whose parameters and text the panels show. */
export const target = signal<Which>(0);
/** The link that the charts show, by name. */
export const linkName = signal("");
/** What the editors hold, per run; it may differ from what runs. */
export const drafts = signal<readonly [string, string]>(["", ""]);
export const problems = signal<readonly [Problem | null, Problem | null]>([null, null]);
/** A message for all to see, and hear by a screen reader. */
export const message = signal<{ text: string; bad: boolean } | null>(null);
export const explanation = signal<Explanation | null>(null);
export const chosen = signal<{ id: number; which: Which } | null>(null);
export const intervals = signal<readonly [Intervals | null, Intervals | null]>([null, null]);
export const seedCount = signal(10);
export const follow = signal(false);
export const measuring = signal(false);
/** Changes since time zero. */
export const changes = signal<readonly Change[]>([]);
/** A change acts on the whole run: it begins again, and catches up. */
export const wholeRun = signal(false);
/** Values are on their way to the engine. */
export const setting = signal(false);
export const compareLabel = signal("");
/** Parameters that the text has left out since the scenario was opened: they keep their place when they are set. */
export const optional = signal<ReadonlySet<string>>(new Set());

export const first = computed(() => runs.value[0]);
export const second = computed(() => runs.value[1]);
export const shown = computed(() => runs.value[target.value] ?? runs.value[0]);

/** The number of the link that the charts show, in one run. */
export function linkOf(opened: Opened): number {
  const named = opened.links.findIndex((link) => link.name === linkName.value && link.measured);
  return named >= 0 ? named : opened.links.findIndex((link) => link.measured);
}
