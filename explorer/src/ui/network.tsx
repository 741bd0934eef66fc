// The animated network: routers, hosts, links with their packets by drop precedence, queues as bars, drops as crosses.

import { useEffect, useRef } from "preact/hooks";
import type { LinkInfo, Opened } from "../protocol.ts";
import { runName } from "./charts.tsx";
import { FALL, type Falling, launch, whereabouts } from "./falling.ts";
import type { History } from "./history.ts";
import { type Layout, layout, type Point } from "./layout.ts";
import type { Palette } from "./palette.ts";
import { classShape, DIAMOND as MARK, PRECEDENCE_SHAPES, polygon, type Shape, trace } from "./shapes.ts";
import * as store from "./store.ts";
import { palette, reducedMotion } from "./theme.ts";
import { classOf, classStyle, colorNames } from "./views.ts";

/** Of the drops and marks since the last picture at most so many are looked at. */
const MOST_NEW = 60;
/** The legend names at most so many classes. */
const MOST_NAMED = 6;

function draw(
  context: CanvasRenderingContext2D,
  places: Layout,
  history: History,
  chosen: number,
  colors: Palette,
  falling: Falling[],
  now: number,
): void {
  const { opened } = history;
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  context.lineCap = "round";
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const host of places.hosts) {
    const style = classStyle(host.at, colors);
    for (const [end, node] of [
      [host.source, places.nodes[host.from]],
      [host.sink, places.nodes[host.to]],
    ] as const) {
      if (!node) continue;
      context.strokeStyle = colors.grid;
      context.lineWidth = 1.5;
      line(context, end, node);
      context.fillStyle = style.color;
      context.beginPath();
      context.roundRect(end.x - 9, end.y - 6, 18, 12, 3);
      context.fill();
    }
  }
  opened.links.forEach((link, index) => {
    drawLink(context, places, opened, link, index, index === chosen, colors);
  });
  packets(context, places, history, colors);
  opened.links.forEach((link, index) => {
    if (link.measured) drawQueue(context, places, history, index, index === chosen, colors);
  });
  opened.nodes.forEach((name, node) => {
    const at = places.nodes[node];
    if (!at) return;
    context.fillStyle = colors.surface;
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.75;
    context.beginPath();
    context.arc(at.x, at.y, opened.nodes.length > 16 ? 7 : 12, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (opened.nodes.length <= 24) {
      context.fillStyle = colors.ink;
      context.fillText(shortened(name, 14), at.x, at.y + 23);
    }
  });
  for (const host of places.hosts) {
    context.fillStyle = colors.muted;
    const text = `${shortened(host.name, 16)}${host.flows > 1 ? ` ×${host.flows}` : ""}`;
    const left = host.source.x < (places.nodes[host.from]?.x ?? 0);
    context.textAlign = left ? "left" : "right";
    context.fillText(text, left ? Math.max(2, host.source.x - 30) : host.source.x + 30, host.source.y - 15);
    context.textAlign = "center";
  }
  signals(context, places, opened, colors, falling, now);
}

/** Drops as crosses and marks as diamonds. */
function signals(
  context: CanvasRenderingContext2D,
  places: Layout,
  opened: Opened,
  colors: Palette,
  falling: Falling[],
  now: number,
): void {
  context.lineWidth = 2;
  for (const one of falling) {
    const link = opened.links[one.link];
    const at = link && bar(places, link);
    if (!at || one.born > now) continue;
    const { along, away, age } = whereabouts(one, now);
    // The first third is as solid as in the legend.
    context.globalAlpha = Math.min(1, 1.5 * (1 - age));
    context.strokeStyle = one.isMark ? colors.mark : colors.drop;
    const x = at.x + along;
    const y = at.isAbove ? at.y - LABEL - away : at.y + at.height + LABEL + away;
    context.beginPath();
    if (one.isMark) {
      trace(context, MARK, x, y, 5);
    } else {
      context.moveTo(x - 4, y - 4);
      context.lineTo(x + 4, y + 4);
      context.moveTo(x + 4, y - 4);
      context.lineTo(x - 4, y + 4);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function line(context: CanvasRenderingContext2D, a: Point, b: Point): void {
  context.beginPath();
  context.moveTo(a.x, a.y);
  context.lineTo(b.x, b.y);
  context.stroke();
}

/** Both ends of a direction: the directions of a link lie side by side. */
function ends(places: Layout, link: LinkInfo): [Point, Point] | null {
  const a = places.nodes[link.from];
  const b = places.nodes[link.to];
  if (!a || !b) return null;
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [dx, dy] = [((b.x - a.x) / length) * 14, ((b.y - a.y) / length) * 14];
  const [ox, oy] = [(-dy / 14) * 5, (dx / 14) * 5];
  return [
    { x: a.x + dx - ox, y: a.y + dy - oy },
    { x: b.x - dx - ox, y: b.y - dy - oy },
  ];
}

function drawLink(
  context: CanvasRenderingContext2D,
  places: Layout,
  opened: Opened,
  link: LinkInfo,
  index: number,
  chosen: boolean,
  colors: Palette,
): void {
  const at = ends(places, link);
  if (!at) return;
  const [a, b] = at;
  context.strokeStyle = chosen ? colors.accent : colors.line;
  context.lineWidth = chosen ? 2.5 : 1.25;
  line(context, a, b);
  const isReverse = opened.links.findIndex((other) => other.from === link.to && other.to === link.from) < index;
  const known = opened.links.some((other) => other.from === link.to && other.to === link.from);
  if (opened.links.length > 12 || (known && isReverse)) return;
  context.fillStyle = chosen ? colors.accent : colors.muted;
  const rate =
    link.rateBps >= 1e9
      ? `${link.rateBps / 1e9} Gbit/s`
      : link.rateBps >= 1e6
        ? `${link.rateBps / 1e6} Mbit/s`
        : `${link.rateBps / 1e3} kbit/s`;
  const text = `${shortened(link.name, 16)}: ${rate}, ${+(link.delayS * 1000).toPrecision(4)} ms`;
  const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
  const steep = Math.abs(b.y - a.y) > Math.abs(b.x - a.x);
  if (steep) {
    context.textAlign = "left";
    context.fillText(text, x + 14, y);
    context.textAlign = "center";
  } else {
    context.fillText(text, x, y + 25);
  }
}

/**
 * Packets by class, or by drop precedence where it counts: as the legend shows them. Those that go back, such as ACKs, are smaller.
 */
function packets(context: CanvasRenderingContext2D, places: Layout, history: History, colors: Palette): void {
  const { opened, flight } = history;
  const all = opened.links.map((link) => ends(places, link));
  const large = flight.length > 1600 ? 2 : 3.2;
  const kinds = packetKinds(opened, ["", "", ""], colors);
  const drawn = new Map<number, number[]>();
  for (let i = 0; i + 3 < flight.length; i += 4) {
    const flow = flight[i + 3] ?? 0;
    const kind = opened.colored ? (flight[i + 2] ?? 0) : classOf(opened, flow < 0 ? -1 - flow : flow);
    const these = drawn.get(kind);
    if (these) these.push(i);
    else drawn.set(kind, [i]);
  }
  for (const [kind, these] of drawn) {
    const { color = colors.ink, shape = [] } = kinds[kind] ?? {};
    context.fillStyle = color;
    context.beginPath();
    for (const i of these) {
      const at = all[flight[i] ?? 0];
      if (!at) continue;
      const progress = flight[i + 1] ?? 0;
      const x = at[0].x + (at[1].x - at[0].x) * progress;
      const y = at[0].y + (at[1].y - at[0].y) * progress;
      trace(context, shape, x, y, (flight[i + 3] ?? 0) < 0 ? large * 0.7 : large);
    }
    context.fill();
  }
}

interface Kind {
  name: string;
  color: string;
  shape: Shape;
}

/** The kinds of packets that the picture distinguishes: drop precedences where packets have several, otherwise classes. */
function packetKinds(opened: Opened, names: readonly string[], colors: Palette): Kind[] {
  if (opened.colored) {
    const paints = [colors.packet.green, colors.packet.yellow, colors.packet.red];
    return paints.map((color, at) => ({ name: names[at] ?? "", color, shape: PRECEDENCE_SHAPES[at] ?? [] }));
  }
  return opened.classes.map(({ name }, at) => ({ name, color: classStyle(at, colors).color, shape: classShape(at) }));
}

/** The bar of a queue, and whether it is above its link. */
interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
  isAbove: boolean;
}

/** The room that a bar's label takes between the bar and what is dropped. */
const LABEL = 24;

/** The place of a queue's bar: above the beginning of its link, or below where that goes to the left. */
function bar(places: Layout, link: LinkInfo): Bar | null {
  const at = ends(places, link);
  if (!at) return null;
  const [a, b] = at;
  const width = Math.min(130, Math.max(40, Math.hypot(b.x - a.x, b.y - a.y) * 0.5));
  const right = b.x >= a.x;
  const x = right ? a.x + 4 : a.x - 4 - width;
  return { x, y: right ? a.y - 31 : a.y + 10, width, height: 18, isAbove: right };
}

/** The length of a full bar, in packets: all thresholds are inside. */
function fullBar(link: LinkInfo): number {
  const thresholds = link.lines.filter((l) => l.unit === "packets" && l.name !== "limit").map((l) => l.value * 1.25);
  const most = Math.max(...thresholds, 0);
  return most > 0 ? Math.min(most, link.limitPackets ?? most) : (link.limitPackets ?? 200);
}

function drawQueue(
  context: CanvasRenderingContext2D,
  places: Layout,
  history: History,
  index: number,
  chosen: boolean,
  colors: Palette,
): void {
  const link = history.opened.links[index];
  const at = link && bar(places, link);
  if (!link || !at) return;
  const full = Math.max(1, fullBar(link));
  const right = at.isAbove;
  context.fillStyle = colors.surface;
  context.strokeStyle = chosen ? colors.accent : colors.line;
  context.lineWidth = chosen ? 2 : 1;
  context.beginPath();
  context.roundRect(at.x, at.y, at.width, at.height, 4);
  context.fill();
  let from = 0;
  const { green, yellow, red } = colors.packet;
  // How many wait is known by drop precedence, not by class.
  const paints = history.opened.colored ? [green, yellow, red] : [colors.waiting, colors.waiting, colors.waiting];
  let total = 0;
  // Counts come for links with a queue only.
  const place = history.opened.links.slice(0, index).filter((other) => other.measured).length;
  for (let color = 0; color < 3; color++) {
    const packets = history.waiting[place * 3 + color] ?? 0;
    total += packets;
    const width = Math.min(at.width - from, (packets / full) * at.width);
    if (width <= 0) continue;
    context.fillStyle = paints[color] ?? colors.ink;
    context.fillRect(right ? at.x + at.width - from - width : at.x + from, at.y + 1, width, at.height - 2);
    from += width;
  }
  context.stroke();
  context.fillStyle = colors.ink;
  for (const threshold of link.lines) {
    if (threshold.unit !== "packets" || threshold.name === "limit" || threshold.value > full) continue;
    const x = (threshold.value / full) * at.width;
    context.fillRect(right ? at.x + at.width - x - 0.5 : at.x + x - 0.5, at.y - 4, 1.5, at.height + 8);
  }
  if (chosen || history.opened.links.length <= 12) {
    context.fillStyle = colors.muted;
    context.textAlign = right ? "left" : "right";
    const name = link.aqm ?? link.scheduler ?? "queue";
    context.fillText(`${name}: ${total} p`, right ? at.x : at.x + at.width, right ? at.y - 11 : at.y + at.height + 11);
    context.textAlign = "center";
  }
}

function spawn(history: History, places: Layout, falling: Falling[], seen: number, now: number): number {
  let newest = seen;
  for (const signal of history.signals.slice(-MOST_NEW)) {
    if (signal.id <= seen) continue;
    newest = Math.max(newest, signal.id);
    const link = history.opened.links[signal.link];
    const at = link && bar(places, link);
    if (at) launch(falling, signal, at.width, now);
  }
  return newest;
}

/** Wall times from one picture to the next, in ms, while the run plays. */
export const pictures: number[] = [];

/** The picture of one run. */
export function Network(props: { which: 0 | 1 }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = store.runs.value[props.which];

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || !shown) return;
    let places: Layout | null = null;
    let request = 0;
    let seen = shown.history.signals.at(-1)?.id ?? -1;
    let last: unknown[] = [];
    let before = 0;
    const falling: Falling[] = [];
    const picture = (now: number) => {
      request = requestAnimationFrame(picture);
      const { history, opened } = shown;
      const width = element.clientWidth;
      const height = element.clientHeight;
      const state = [
        width,
        height,
        palette.peek(),
        history.flight,
        history.waiting,
        store.linkName.peek(),
        devicePixelRatio,
      ];
      if (props.which === 0 && store.playing.peek()) {
        if (before > 0) pictures.push(now - before);
        before = now;
        if (pictures.length > 4000) pictures.splice(0, 2000);
      } else {
        before = 0;
      }
      if (falling.length === 0 && state.every((value, i) => value === last[i])) return;
      if (width === 0) return;
      if (!places || width !== last[0] || height !== last[1] || devicePixelRatio !== last[6]) {
        element.width = Math.round(width * devicePixelRatio);
        element.height = Math.round(height * devicePixelRatio);
        places = layout(opened, width, height);
      }
      last = state;
      const colors = palette.peek();
      if (!reducedMotion.peek()) seen = spawn(history, places, falling, seen, now);
      falling.splice(0, falling.length, ...falling.filter(({ born }) => now - born <= FALL));
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      draw(context, places, history, store.linkOf(opened), colors, falling, now);
    };
    request = requestAnimationFrame(picture);
    return () => cancelAnimationFrame(request);
  }, [shown, props.which]);

  if (!shown) return null;
  const { opened } = shown;
  const choose = (event: MouseEvent) => {
    const element = canvas.current;
    if (!element) return;
    const box = element.getBoundingClientRect();
    const places = layout(opened, box.width, box.height);
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best: { name: string; far: number } | null = null;
    for (const link of opened.links) {
      const at = link.measured ? ends(places, link) : null;
      if (!at) continue;
      const far = distance({ x, y }, ...at);
      if (far < 34 && (!best || far < best.far)) best = { name: link.name, far };
    }
    if (best) store.linkName.value = best.name;
  };
  const about = `Network with ${opened.nodes.length} routers, ${opened.links.length} directions of links and ${opened.classes.reduce((sum, { flows }) => sum + flows, 0)} flows. The charts below tell the same in numbers.`;
  return (
    <figure class="network">
      {store.second.value && <figcaption class="run">{runName(props.which)}</figcaption>}
      <canvas ref={canvas} role="img" aria-label={about} onClick={choose} />
      {props.which === 0 && <Key shown={shown} />}
    </figure>
  );
}

/** The legend: the kinds of packets, drops and marks. */
function Key(props: { shown: store.Shown }) {
  void store.drawn.value;
  const { opened, history } = props.shown;
  const colors = palette.value;
  const [green, yellow, red] = colorNames(history, store.linkOf(opened));
  const names = green === "IN" ? ["IN (green)", "OUT (yellow)", "OUT (red)"] : [green, yellow, red].map(String);
  const kinds = packetKinds(opened, names, colors);
  const more = kinds.length - MOST_NAMED;
  return (
    <ul class="key" aria-label="Packets">
      {kinds.slice(0, MOST_NAMED).map(({ name, color, shape }) => (
        <li key={name}>
          <svg width="12" height="12" aria-hidden="true">
            {shape.length === 0 ? (
              <circle cx="6" cy="6" r="4.5" fill={color} />
            ) : (
              <polygon points={polygon(shape, 6, 6, 4.3)} fill={color} />
            )}
          </svg>
          {name}
        </li>
      ))}
      {more > 0 && <li>and {more} more</li>}
      <li>
        <svg width="12" height="12" aria-hidden="true">
          <path d="M2 2l8 8m0-8l-8 8" stroke={colors.drop} stroke-width="2" />
        </svg>
        dropped
      </li>
      <li>
        <svg width="12" height="12" aria-hidden="true">
          <polygon points={polygon(MARK, 6, 6, 3.6)} fill="none" stroke={colors.mark} stroke-width="2" />
        </svg>
        marked (ECN)
      </li>
    </ul>
  );
}

function distance(p: Point, a: Point, b: Point): number {
  const length = (b.x - a.x) ** 2 + (b.y - a.y) ** 2;
  const t =
    length === 0 ? 0 : Math.max(0, Math.min(1, ((p.x - a.x) * (b.x - a.x) + (p.y - a.y) * (b.y - a.y)) / length));
  return Math.hypot(p.x - a.x - t * (b.x - a.x), p.y - a.y - t * (b.y - a.y));
}
