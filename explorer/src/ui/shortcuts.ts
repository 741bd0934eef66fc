// Keys that act anywhere on the page, except in a field where one writes.

import { signal } from "@preact/signals";
import type { Panel } from "../state.ts";
import { openDialog } from "./dialogs.tsx";
import * as store from "./store.ts";

/** A key and what it does. */
export interface Shortcut {
  key: string;
  does: string;
  act: () => unknown;
}

/** Keys can be switched off (WCAG 2.1, success criterion 2.1.4). */
export const shortcutsOn = signal(true);

function faster(by: 1 | -1): void {
  const at = store.SPEEDS.findIndex((speed) => speed >= store.speed.value);
  const next = store.SPEEDS[Math.max(0, Math.min(store.SPEEDS.length - 1, at + by))];
  if (next !== undefined) void store.setSpeed(next);
}

function show(panel: Panel): void {
  store.panel.value = panel;
  requestAnimationFrame(() => document.getElementById(`tab-${panel}`)?.focus());
}

export const SHORTCUTS: readonly Shortcut[] = [
  { key: " ", does: "play or pause", act: () => (store.playing.value ? store.pause() : store.play()) },
  { key: ".", does: "one packet further", act: () => store.step() },
  { key: "d", does: "on to the next drop or mark, and why", act: () => whyNext() },
  { key: "r", does: "restart at time zero", act: () => store.restart() },
  { key: "]", does: "faster", act: () => faster(1) },
  { key: "[", does: "slower", act: () => faster(-1) },
  { key: "g", does: "scenarios", act: () => openDialog("gallery") },
  { key: "c", does: "compare with another mechanism", act: () => openDialog("compare") },
  { key: "s", does: "share a link", act: () => openDialog("share") },
  { key: "x", does: "export", act: () => openDialog("export") },
  { key: "1", does: "parameters", act: () => show("parameters") },
  { key: "2", does: "scenario as text", act: () => show("scenario") },
  { key: "3", does: "why a packet was dropped", act: () => show("why") },
  { key: "4", does: "several seeds", act: () => show("seeds") },
  { key: "?", does: "this help", act: () => openDialog("help") },
];

/** On to the next drop, with the panel that explains it. */
export async function whyNext(): Promise<void> {
  store.panel.value = "why";
  await store.nextDrop();
}

const WRITING = new Set(["TEXTAREA", "SELECT"]);

/** Listens for the keys. */
export function listen(): void {
  document.addEventListener("keydown", (event) => {
    if (!shortcutsOn.value || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (document.querySelector("dialog[open]")) return;
    const types = !(target instanceof HTMLInputElement) || ["range", "checkbox", "radio"].includes(target.type);
    if (WRITING.has(target.tagName) || !types) return;
    // Space acts on the element that has the focus.
    if (event.key === " " && target !== document.body && target.tagName !== "MAIN") return;
    const shortcut = SHORTCUTS.find(({ key }) => key === event.key);
    if (!shortcut) return;
    event.preventDefault();
    void shortcut.act();
  });
}
