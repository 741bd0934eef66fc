// Mechanisms that can be put beside the scenario's own, each as the table of a queue.

import type { LinkInfo } from "../protocol.ts";

/** A queue's table in TOML, for a link with this room. */
export interface Mechanism {
  name: string;
  table: (limit: string, packets: number) => string;
}

function sets(low: number, high: number, most: number): (packets: number) => string {
  return (packets) => `${Math.max(1, Math.round(packets * low))}/${Math.max(2, Math.round(packets * high))}/${most}`;
}

const whole = sets(0.15, 0.45, 0.1);
const inside = sets(0.3, 0.9, 0.02);

/** All mechanisms with parameters that suit the room. Those of the RED family get thresholds at fixed parts of it. */
export const MECHANISMS: readonly Mechanism[] = [
  { name: "drop-tail", table: (limit) => `{ aqm = "drop-tail", limit = "${limit}" }` },
  { name: "red", table: (limit, p) => `{ aqm = "red", limit = "${limit}", thresholds = "${whole(p)}" }` },
  {
    name: "adaptive red",
    table: (limit, p) =>
      `{ aqm = "red", limit = "${limit}", thresholds = "${whole(p)}", adaptive = true, gentle = true }`,
  },
  {
    name: "rio",
    table: (limit, p) => `{ aqm = "rio", limit = "${limit}", in = "${inside(p)}", total = "${whole(p)}" }`,
  },
  {
    name: "rio-plus-out",
    table: (limit, p) =>
      `{ aqm = "rio-plus-out", limit = "${limit}", in = "${inside(p)}", total = "${whole(p)}", out = "${whole(p)}" }`,
  },
  { name: "blue", table: (limit) => `{ aqm = "blue", limit = "${limit}" }` },
  { name: "codel", table: (limit) => `{ aqm = "codel", limit = "${limit}" }` },
  { name: "cobalt", table: (limit) => `{ aqm = "cobalt", limit = "${limit}" }` },
  { name: "pie", table: (limit) => `{ aqm = "pie", limit = "${limit}" }` },
  { name: "pi2", table: (limit) => `{ aqm = "pi2", limit = "${limit}" }` },
  { name: "fq-codel", table: () => `{ scheduler = "fq-codel" }` },
  { name: "dualpi2", table: () => `{ scheduler = "dualpi2" }` },
];

/** The mechanism's table for this link: with as much room as its queue has, or 200 packets. */
export function tableFor(mechanism: Mechanism, link: LinkInfo | undefined): string {
  const packets = link?.limitPackets ?? (link?.limitBytes ? Math.max(4, Math.floor(link.limitBytes / 1000)) : 200);
  return mechanism.table(`${packets}p`, packets);
}
