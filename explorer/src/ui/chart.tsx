// A chart: uPlot for the lines, and around it a heading, a legend with the latest values, and a table for those who see no picture.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { number } from "./format.ts";
import { Marked } from "./marked.tsx";
import { DASHES, type Palette } from "./palette.ts";
import { palette } from "./theme.ts";
import { drawUprights, type Upright } from "./uprights.ts";

/** A line of a chart. */
export interface Line {
  label: string;
  /** As many as there are values on the x axis; `null` is a gap. */
  values: ArrayLike<number | null>;
  color: string;
  dash?: readonly number[];
  width?: number;
  /** The area below it is tinted. */
  filled?: boolean;
  /** Of the second mechanism: drawn thinner and dashed. */
  second?: boolean;
  /** Points without a line: one for each event. */
  points?: "cross" | "diamond";
  /** Left out of the legend. */
  unlisted?: boolean;
  /** What the legend shows instead of the latest value. */
  note?: string;
  /** What a legend with `columns` shows in each of them instead of the note. */
  figures?: string[];
}

/** A horizontal line with a name, such as a threshold. */
export interface Level {
  label: string;
  value: number;
  color: string;
  dash?: readonly number[];
}

/** What a chart shows. */
export interface ChartProps {
  title: string;
  /** What one sees in it, in a sentence. */
  hint?: string;
  unit: string;
  x: ArrayLike<number>;
  xUnit: string;
  xRange?: [number, number];
  yRange?: [number, number | null];
  lines: Line[];
  levels?: Level[];
  uprights?: Upright[];
  /** The legend is a table with these columns, which lines have `figures` for. */
  columns?: string[];
  /** Sentences below the chart, in which backticks set code off. */
  remarks?: string[];
  /** A vertical line at this x, such as the present time. */
  cursor?: number;
  height?: number;
  id: string;
  /** A click into the chart at this x. */
  onPick?: (x: number) => void;
}

/** The charts of the page, for the export of pictures. */
export const charts = new Map<
  string,
  { title: string; canvas: () => HTMLCanvasElement | null; props: () => ChartProps }
>();

function cross(
  u: uPlot,
  seriesIndex: number,
  first: number,
  last: number,
  color: string,
  shape: "cross" | "diamond",
): null {
  const { ctx } = u;
  const xs = u.data[0];
  const ys = u.data[seriesIndex];
  if (!ys) return null;
  const r = 3.2 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = 1.6 * devicePixelRatio;
  ctx.beginPath();
  for (let i = first; i <= last; i++) {
    const y = ys[i];
    if (y === null || y === undefined) continue;
    const cx = u.valToPos(xs[i] ?? 0, "x", true);
    const cy = u.valToPos(y, "y", true);
    if (shape === "cross") {
      ctx.moveTo(cx - r, cy - r);
      ctx.lineTo(cx + r, cy + r);
      ctx.moveTo(cx + r, cy - r);
      ctx.lineTo(cx - r, cy + r);
    } else {
      ctx.moveTo(cx, cy - r);
      ctx.lineTo(cx + r, cy);
      ctx.lineTo(cx, cy + r);
      ctx.lineTo(cx - r, cy);
      ctx.closePath();
    }
  }
  ctx.stroke();
  if (shape === "diamond") ctx.fill();
  ctx.restore();
  return null;
}

function options(
  width: number,
  height: number,
  colors: Palette,
  latest: { current: ChartProps },
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const props = latest.current;
  const axis = (label: string): uPlot.Axis => ({
    stroke: colors.muted,
    grid: { stroke: colors.grid, width: 1 },
    ticks: { stroke: colors.grid, width: 1, size: 4 },
    font: "11px system-ui, sans-serif",
    labelFont: "11px system-ui, sans-serif",
    label,
    labelSize: 16,
    labelGap: 0,
    gap: 3,
  });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: true, drag: { x: false, y: false }, points: { size: 5 }, y: false },
    padding: [8, 10, 0, 0],
    scales: {
      x: { time: false, range: (_u, low, high) => latest.current.xRange ?? [low, high] },
      y: { range: (_u, _low, high) => vertical(latest.current, high) },
    },
    axes: [
      { ...axis(props.xUnit), size: 26 },
      { ...axis(props.unit), size: 44, values: (_u, splits) => splits.map((v) => number(v)) },
    ],
    series: [
      {},
      ...props.lines.map((line): uPlot.Series => {
        const series: uPlot.Series = {
          label: line.label,
          stroke: line.color,
          width: line.width ?? (line.second ? 1.25 : 1.75),
          dash: [...(line.dash ?? [])],
          points: { show: false },
          spanGaps: false,
        };
        if (line.filled) series.fill = `${line.color}26`;
        const shape = line.points;
        if (shape) series.paths = (u, index, first, last) => cross(u, index, first, last, line.color, shape);
        return series;
      }),
    ],
    hooks: {
      draw: [(u) => levels(u, latest.current, colors), (u) => drawUprights(u, latest.current.uprights ?? [], colors)],
      setCursor: [(u) => onPoint((u.cursor.left ?? -1) < 0 ? null : (u.cursor.idx ?? null))],
    },
  };
}

function vertical(props: ChartProps, high: number): [number, number] {
  const bottom = props.yRange?.[0] ?? 0;
  const top = props.yRange?.[1];
  if (top !== null && top !== undefined) return [bottom, top];
  const seen = Math.max(Number.isFinite(high) ? high : 0, ...(props.levels ?? []).map((level) => level.value));
  return [bottom, seen > bottom ? bottom + (seen - bottom) * 1.08 : bottom + 1];
}

function levels(u: uPlot, props: ChartProps, colors: Palette): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  let above = Number.POSITIVE_INFINITY;
  for (const level of [...(props.levels ?? [])].sort((a, b) => a.value - b.value)) {
    const y = u.valToPos(level.value, "y", true);
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.strokeStyle = level.color;
    ctx.fillStyle = level.color;
    ctx.lineWidth = 1.2 * ratio;
    ctx.setLineDash((level.dash ?? [5, 4]).map((length) => length * ratio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    const text = Math.min(y - 2 * ratio, above - 12 * ratio);
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * ratio;
    ctx.strokeStyle = colors.surface;
    ctx.strokeText(level.label, bbox.left + bbox.width - 3 * ratio, text);
    ctx.fillText(level.label, bbox.left + bbox.width - 3 * ratio, text);
    above = text;
  }
  if (props.cursor !== undefined) {
    const x = u.valToPos(props.cursor, "x", true);
    if (x >= bbox.left && x <= bbox.left + bbox.width) {
      ctx.strokeStyle = colors.muted;
      ctx.lineWidth = ratio;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
  }
  ctx.restore();
}

function signature(props: ChartProps, colors: Palette): string {
  const lines = props.lines.map((l) =>
    [l.label, l.color, l.dash?.join(), l.width, l.filled, l.second, l.points].join("|"),
  );
  return [colors.surface, props.unit, props.xUnit, ...lines].join("\n");
}

/** The latest value of a line that is not a gap. */
export function latestOf(values: ArrayLike<number | null>): number | null {
  for (let i = values.length - 1; i >= 0; i--) {
    const value = values[i];
    if (value !== null && value !== undefined && !Number.isNaN(value)) return value;
  }
  return null;
}

/** The highest value that lies above the axis, with its x; `null` if all are in sight. */
export function above(
  props: Pick<ChartProps, "x" | "xRange" | "yRange" | "lines">,
): { x: number; value: number } | null {
  let found: { x: number; value: number } | null = null;
  const top = props.yRange?.[1];
  if (top === null || top === undefined) return null;
  const [low, high] = props.xRange ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const { values } of props.lines) {
    for (let i = 0; i < values.length; i++) {
      const [x, value] = [props.x[i] ?? 0, values[i] ?? 0];
      if (value > (found?.value ?? top) && x >= low && x <= high) found = { x, value };
    }
  }
  return found;
}

/** A line's value at this place on the x axis, or its latest, with its unit. */
function valueAt(line: Line, at: number | null, unit: string): string {
  const value = at === null ? latestOf(line.values) : (line.values[at] ?? null);
  return value === null || Number.isNaN(value) ? "–" : `${number(value)} ${unit}`;
}

function unitOfX(props: Pick<ChartProps, "xUnit">): string {
  return props.xUnit.split(", ").at(-1) ?? "";
}

/** The first and the last place on the x axis that are in sight. */
export function shownPart(props: Pick<ChartProps, "x" | "xRange">): [number, number] {
  const [low, high] = props.xRange ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  let [first, last] = [0, props.x.length - 1];
  while (first < last && (props.x[first] ?? 0) < low) first++;
  while (last > first && (props.x[last] ?? 0) > high) last--;
  return [first, last];
}

/** Where a key takes the place on the x axis: a hundredth of what is in sight, a tenth, or an end; `null` for other keys. */
export function moved(key: string, at: number, [first, last]: [number, number]): number | null {
  const by = Math.max(1, Math.round((last - first) / 100));
  const to = {
    ArrowLeft: at - by,
    ArrowRight: at + by,
    ArrowDown: at - by,
    ArrowUp: at + by,
    PageDown: at - 10 * by,
    PageUp: at + 10 * by,
    Home: first,
    End: last,
  }[key];
  return to === undefined ? null : Math.max(first, Math.min(last, to));
}

/** A chart with its heading and legend. */
export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<{ u: uPlot; signature: string } | null>(null);
  const colors = palette.value;
  // The place under the pointer, by its index on the x axis.
  const [point, setPoint] = useState<number | null>(null);

  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const observer = new ResizeObserver(() => {
      const current = plot.current;
      if (current && target.clientWidth > 0) {
        current.u.setSize({ width: target.clientWidth, height: latest.current.height ?? 190 });
      }
    });
    observer.observe(target);
    charts.set(props.id, {
      title: props.title,
      canvas: () => plot.current?.u.ctx.canvas ?? null,
      props: () => latest.current,
    });
    return () => {
      observer.disconnect();
      plot.current?.u.destroy();
      plot.current = null;
      charts.delete(props.id);
    };
  }, []);

  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const data = [props.x, ...props.lines.map((line) => line.values)] as uPlot.AlignedData;
    const wanted = signature(props, colors);
    if (plot.current?.signature !== wanted) {
      plot.current?.u.destroy();
      const u = new uPlot(
        options(Math.max(target.clientWidth, 100), props.height ?? 190, colors, latest, setPoint),
        data,
        target,
      );
      u.over.addEventListener("click", () => {
        const left = u.cursor.left;
        if (left !== undefined && left >= 0) latest.current.onPick?.(u.posToVal(left, "x"));
      });
      plot.current = { u, signature: wanted };
    } else {
      plot.current.u.setData(data);
    }
  });

  const listed = props.lines.filter((line) => !line.unlisted);
  const at = point !== null && point < props.x.length ? point : null;
  const peak = above(props);
  const last = props.x.length - 1;
  const known = (line: Line) => valueAt(line, at, props.unit);
  const pointed = at === null ? null : `${number(props.x[at] ?? 0)} ${unitOfX(props)}`;
  const said = (line: Line) => `${line.label} ${known(line)}`;
  // A running chart does not talk by itself.
  const spoken =
    pointed === null ? "the latest values; arrow keys go to others" : `at ${pointed}: ${listed.map(said).join(", ")}`;
  // As the pointer does: its values stand in the legend, and are what a screen reader hears.
  const move = (event: KeyboardEvent) => {
    const to = moved(event.key, at ?? last, shownPart(props));
    const u = plot.current?.u;
    if (!u || to === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    setPoint(to);
    u.setCursor({ left: u.valToPos(props.x[to] ?? 0, "x"), top: 0 }, false);
  };
  const leave = () => {
    setPoint(null);
    plot.current?.u.setCursor({ left: -10, top: -10 }, false);
  };
  return (
    <section class="chart" aria-labelledby={`${props.id}-title`}>
      <h3 id={`${props.id}-title`}>{props.title}</h3>
      {props.columns ? (
        <LegendTable columns={props.columns} lines={listed} at={pointed} value={known} />
      ) : (
        <ul class="legend">
          {listed.map((line) => (
            <li key={line.label}>
              <Key line={line} />
              <b>{at === null ? (line.note ?? known(line)) : known(line)}</b>
            </li>
          ))}
          {pointed !== null && (
            <li class="pointed">
              at <b>{pointed}</b>
            </li>
          )}
        </ul>
      )}
      {listed.length === 0 ? (
        <div class="plot" ref={place} aria-hidden="true" />
      ) : (
        <div
          class="plot"
          ref={place}
          role="slider"
          tabIndex={0}
          aria-label={`${props.title}, values`}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, last)}
          aria-valuenow={at ?? last}
          aria-valuetext={spoken}
          onKeyDown={move}
          onBlur={leave}
        />
      )}
      {props.hint && <p class="hint">{props.hint}</p>}
      {props.remarks?.map((text) => (
        <p class="hint" key={text}>
          <Marked text={text} />
        </p>
      ))}
      {peak && (
        <p class="hint peak">{`The peak of ${number(peak.value)} ${props.unit} at ${number(peak.x)} ${unitOfX(props)} lies above the axis.`}</p>
      )}
    </section>
  );
}

/** A line's sample and name. */
function Key({ line }: { line: Line }) {
  return (
    <>
      <Swatch color={line.color} dash={line.dash ?? DASHES[0] ?? []} points={line.points} />
      <span>{line.label}</span>
    </>
  );
}

/** A legend with several figures of each line; under the pointer their values there. */
function LegendTable(props: { columns: string[]; lines: Line[]; at: string | null; value: (line: Line) => string }) {
  const { columns, lines, at, value } = props;
  return (
    <table class="legend">
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">curve</span>
          </th>
          {at === null &&
            columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          {at !== null && (
            <th scope="col" class="pointed" colSpan={columns.length}>
              at <b>{at}</b>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.label}>
            <th scope="row">
              <Key line={line} />
            </th>
            {at === null && columns.map((name, i) => <td key={name}>{line.figures?.[i]}</td>)}
            {at !== null && <td colSpan={columns.length}>{value(line)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A sample of a line as a legend shows it. */
export function Swatch(props: { color: string; dash: readonly number[]; points?: "cross" | "diamond" | undefined }) {
  return (
    <svg class="swatch" width="26" height="10" viewBox="0 0 26 10" aria-hidden="true" focusable="false">
      {props.points === "cross" && <path d="M9 1l8 8m0-8l-8 8" stroke={props.color} stroke-width="2" />}
      {props.points === "diamond" && <path d="M13 0l5 5-5 5-5-5z" fill={props.color} />}
      {!props.points && (
        <line
          x1="0"
          y1="5"
          x2="26"
          y2="5"
          stroke={props.color}
          stroke-width="2.5"
          stroke-dasharray={props.dash.join(" ")}
        />
      )}
    </svg>
  );
}
