// Files of what the page shows.

import type { ExportKind, Which } from "../protocol.ts";
import type { Change } from "../state.ts";
import { charts, latestOf } from "./chart.tsx";
import { number } from "./format.ts";
import * as store from "./store.ts";
import { palette } from "./theme.ts";

function download(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  store.say(`Exported ${name}.`);
}

/** A name for a file of this run: letters, digits and hyphens of its title. */
function fileName(which: Which, ending: string): string {
  const title = store.runs.value[which]?.opened.title ?? "";
  const plain = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 50);
  return `${plain || "perhop"}${store.second.value ? (which === 0 ? "-a" : "-b") : ""}-seed-${store.seed.value}${ending}`;
}

/** Data that the engine writes. */
export async function data(kind: ExportKind, which: Which): Promise<void> {
  const text = await store.exported(kind, which);
  if (text === null) return;
  const json = kind === "outcome";
  download(
    fileName(which, json ? ".json" : `-${kind}.csv`),
    new Blob([text], { type: json ? "application/json" : "text/csv" }),
  );
}

/** The scenario as it is now; changes during the run come before it, as comments. */
export function toml(which: Which): void {
  const shown = store.runs.value[which];
  if (!shown) return;
  const text = `${remarks(which)}${shown.opened.toml}`;
  download(fileName(which, ".toml"), new Blob([text], { type: "application/toml" }));
}

/** Of a slider that moved only where it stopped. */
function remarks(which: Which): string {
  const made = store.changes.value.filter((change) => change.which === which);
  if (made.length === 0) return "";
  const stops = made.filter(({ path }, i) => made[i + 1]?.path !== path);
  // Names are those of a scenario, which may come from a link: a line stays one line.
  const line = ({ atS, path, value }: Change) =>
    `# at ${atS.toFixed(3)} s: ${store.said(path, value)}`.replaceAll(/\p{C}/gu, " ");
  const heading = `# Changed while the run went on, seed ${store.seed.value}; this file has the latest values from time zero on:`;
  return `${[heading, ...stops.map(line)].join("\n")}\n\n`;
}

/** All charts with their headings and legends, in one picture. */
export async function picture(): Promise<void> {
  const shown = store.first.value;
  if (!shown) return;
  const colors = palette.value;
  const parts = [...charts.values()].flatMap((chart) => {
    const canvas = chart.canvas();
    return canvas && canvas.width > 0 ? [{ chart, canvas }] : [];
  });
  const ratio = devicePixelRatio;
  const width = Math.max(...parts.map(({ canvas }) => canvas.width / ratio), 300);
  const columns = parts.length > 2 ? 2 : 1;
  const heights = parts.map(
    ({ chart, canvas }) =>
      26 + 16 * chart.props().lines.filter((line) => !line.unlisted).length + canvas.height / ratio + 14,
  );
  const rows = Math.ceil(parts.length / columns);
  const tops: number[] = [64];
  for (let row = 0; row < rows; row++) {
    tops.push((tops[row] ?? 0) + Math.max(...heights.slice(row * columns, (row + 1) * columns)));
  }
  const canvas = document.createElement("canvas");
  const scale = Math.max(2, ratio);
  canvas.width = (columns * (width + 24) + 24) * scale;
  canvas.height = ((tops.at(-1) ?? 0) + 20) * scale;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colors.ink;
  context.font = "600 18px system-ui, sans-serif";
  context.fillText(shown.opened.title || "perhop", 24, 32, canvas.width / scale - 48);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = colors.muted;
  context.fillText(`perhop, seed ${store.seed.value}, at ${store.time.value.toFixed(2)} s`, 24, 52);
  parts.forEach(({ chart, canvas: source }, i) => {
    const x = 24 + (i % columns) * (width + 24);
    let y = (tops[Math.floor(i / columns)] ?? 0) + 16;
    context.fillStyle = colors.ink;
    context.font = "600 14px system-ui, sans-serif";
    context.fillText(chart.title, x, y, width);
    y += 18;
    const props = chart.props();
    context.font = "12px system-ui, sans-serif";
    for (const line of props.lines) {
      if (line.unlisted) continue;
      context.strokeStyle = line.color;
      context.lineWidth = 2.5;
      context.setLineDash([...(line.dash ?? [])]);
      context.beginPath();
      context.moveTo(x, y - 4);
      context.lineTo(x + 26, y - 4);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = colors.muted;
      const value = latestOf(line.values);
      context.fillText(
        `${line.label}: ${line.note ?? (value === null ? "–" : `${number(value)} ${props.unit}`)}`,
        x + 33,
        y,
        width - 33,
      );
      y += 16;
    }
    context.drawImage(source, x, y - 8, source.width / ratio, source.height / ratio);
  });
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob) download(fileName(0, ".png"), blob);
}
