// Upright lines of a chart, such as bounds: each with its name, and as an arrow at the right edge where it lies beyond the axis.

import type uPlot from "uplot";
import type { Palette } from "./palette.ts";

/** An upright line with a name. */
export interface Upright {
  label: string;
  /** Its place on the x axis. */
  value: number;
  color: string;
}

/** What is drawn on. */
type Plot = Pick<uPlot, "ctx" | "bbox" | "valToPos">;

/** Draws them; their names stand above one another from the lower right corner, where a distribution leaves room. */
export function drawUprights(u: Plot, uprights: readonly Upright[], colors: Palette, ratio = devicePixelRatio): void {
  const { ctx, bbox } = u;
  const [right, bottom] = [bbox.left + bbox.width, bbox.top + bbox.height];
  const gap = 4 * ratio;
  ctx.save();
  ctx.font = `600 ${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  [...uprights]
    .sort((a, b) => b.value - a.value)
    .forEach(({ label, value, color }, place) => {
      const x = u.valToPos(value, "x", true);
      const isBeyond = x > right;
      const text = isBeyond ? `${label} →` : label;
      const width = Math.min(ctx.measureText(text).width, bbox.width - 2 * gap);
      // Left of its line, or right of it where there is no room.
      const before = Math.min(x, right) - gap - width;
      const from = before >= bbox.left + gap ? before : Math.min(x + gap, right - gap - width);
      const y = bottom - gap - place * 14 * ratio;
      ctx.strokeStyle = color;
      ctx.fillStyle = color;
      if (!isBeyond) {
        ctx.lineWidth = 1.6 * ratio;
        ctx.setLineDash([2 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bottom);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.lineWidth = 3 * ratio;
      ctx.strokeStyle = colors.surface;
      ctx.strokeText(text, from, y, width);
      ctx.fillText(text, from, y, width);
    });
  ctx.restore();
}
