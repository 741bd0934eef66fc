// Colors of charts and of the network, for light and dark. Okabe & Ito, "Color Universal Design", 2008: distinct with every common
// kind of color blindness. A second channel (dashes, shapes, labels) says the same everywhere.

/** Colors that a canvas draws with. */
export interface Palette {
  ink: string;
  muted: string;
  grid: string;
  surface: string;
  line: string;
  accent: string;
  /** Series in the order in which they are given out. */
  series: readonly string[];
  /** Packets by drop precedence: green (IN), yellow, red (OUT). */
  packet: { green: string; yellow: string; red: string };
  /** Waiting packets where color does not distinguish them. */
  waiting: string;
  drop: string;
  mark: string;
}

export const LIGHT: Palette = {
  ink: "#17212b",
  muted: "#4a5866",
  grid: "#dfe5ea",
  surface: "#ffffff",
  line: "#9aa7b3",
  accent: "#0067a3",
  series: ["#0072b2", "#d55e00", "#009e73", "#b0568c", "#b87f00", "#2f8fc4", "#17212b"],
  packet: { green: "#009e73", yellow: "#e69f00", red: "#d55e00" },
  waiting: "#8a98a6",
  drop: "#b3001e",
  mark: "#7a2fb0",
};

export const DARK: Palette = {
  ink: "#e8eef3",
  muted: "#a9b6c2",
  grid: "#2b3641",
  surface: "#172029",
  line: "#5d6b78",
  accent: "#6fc3f2",
  series: ["#56b4e9", "#ff8a3d", "#1fc79b", "#e59cc5", "#f0e442", "#8fb3ff", "#e8eef3"],
  packet: { green: "#1fc79b", yellow: "#f0c542", red: "#ff7f3a" },
  waiting: "#72828f",
  drop: "#ff5c6c",
  mark: "#c79bff",
};

/** Dashes of lines, by the order of series: the second channel beside color. */
export const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 2], [1, 4]];
