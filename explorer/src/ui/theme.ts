// Light or dark, and motion or none: as the user has chosen, or the operating system.

import { effect, signal } from "@preact/signals";
import { DARK, LIGHT, type Palette } from "./palette.ts";

/** What the user has chosen; `system` follows the operating system. */
export type ThemeChoice = "system" | "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(dark.matches);
dark.addEventListener("change", () => {
  systemIsDark.value = dark.matches;
});

/** The choice, kept in this browser only. */
export const themeChoice = signal<ThemeChoice>(kept());

/** The palette that is in force. */
export const palette = signal<Palette>(LIGHT);

effect(() => {
  const choice = themeChoice.value;
  const isDark = choice === "dark" || (choice === "system" && systemIsDark.value);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  palette.value = isDark ? DARK : LIGHT;
  try {
    localStorage.setItem("perhop-theme", choice);
  } catch {
    // A browser that keeps nothing: the choice lasts for this visit.
  }
});

function kept(): ThemeChoice {
  try {
    const value = localStorage.getItem("perhop-theme");
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** The user wants no motion: packets are then shown as counts, and nothing moves by itself. */
export const reducedMotion = signal(reduced.matches);
reduced.addEventListener("change", () => {
  reducedMotion.value = reduced.matches;
});
