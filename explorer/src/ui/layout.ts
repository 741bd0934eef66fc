// Where the picture of a network puts routers, hosts and links.

import type { Opened } from "../protocol.ts";

export interface Point {
  x: number;
  y: number;
}

/** A class of flows: a host on each side. */
export interface HostPair {
  name: string;
  flows: number;
  from: number;
  to: number;
  source: Point;
  sink: Point;
  at: number;
}

/** Places in a picture of this size. */
export interface Layout {
  nodes: Point[];
  hosts: HostPair[];
}

/** More classes than this have no hosts of their own in the picture. */
const MOST_HOSTS = 8;

/** Routers from left to right by their distance from the routers where data enters; hosts outside. */
export function layout(opened: Opened, width: number, height: number): Layout {
  const count = opened.nodes.length;
  const depth = depths(opened);
  const most = Math.max(1, ...depth);
  const { classes } = opened;
  const margin = classes.length > 0 && classes.length <= MOST_HOSTS ? Math.min(120, width * 0.2) : 40;
  const top = 34;
  const room = height - top - 26;
  const column: number[][] = Array.from({ length: most + 1 }, () => []);
  for (let node = 0; node < count; node++) column[depth[node] ?? 0]?.push(node);
  const nodes: Point[] = Array.from({ length: count }, () => ({ x: 0, y: 0 }));
  column.forEach((members, at) => {
    members.forEach((node, row) => {
      nodes[node] = {
        x: margin + ((width - 2 * margin) * at) / most,
        y: top + (room * (row + 0.5)) / members.length,
      };
    });
  });
  const hosts: HostPair[] = [];
  if (classes.length <= MOST_HOSTS) {
    const rows = (node: number, side: "from" | "to") => classes.filter((one) => one[side] === node).length;
    const taken = new Map<string, number>();
    classes.forEach(({ name, flows, from, to }, at) => {
      const end = { from, to };
      const place = (side: "from" | "to"): Point => {
        const node = nodes[end[side]] ?? { x: 0, y: 0 };
        const key = `${side} ${end[side]}`;
        const row = taken.get(key) ?? 0;
        taken.set(key, row + 1);
        const total = rows(end[side], side);
        const left = node.x < width / 2;
        const x = node.x + (left ? -1 : 1) * margin * 0.72;
        const step = Math.min(46, room / Math.max(total, 1));
        const both =
          rows(end[side], side === "from" ? "to" : "from") > 0 ? (side === "from" ? -step * 0.7 : step * 0.7) : 0;
        return { x, y: node.y + (row - (total - 1) / 2) * step + both };
      };
      hosts.push({ name, flows, from, to, source: place("from"), sink: place("to"), at });
    });
  }
  return { nodes, hosts };
}

/** The distance of each router from those where data enters. */
function depths(opened: Opened): number[] {
  const count = opened.nodes.length;
  const depth: number[] = new Array(count).fill(-1);
  const next: number[][] = Array.from({ length: count }, () => []);
  for (const link of opened.links) next[link.from]?.push(link.to);
  const targets = new Set(opened.classes.map(({ to }) => to));
  const sources = [...new Set(opened.classes.map(({ from }) => from))];
  const pure = sources.filter((node) => !targets.has(node));
  const queue = pure.length > 0 ? pure : sources.slice(0, 1);
  if (queue.length === 0 && count > 0) queue.push(0);
  for (const node of queue) depth[node] = 0;
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at] ?? 0;
    for (const other of next[node] ?? []) {
      if ((depth[other] ?? 0) >= 0) continue;
      depth[other] = (depth[node] ?? 0) + 1;
      queue.push(other);
    }
  }
  return depth.map((value) => Math.max(0, value));
}
