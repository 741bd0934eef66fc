// Drops and marks in the picture of a network: crosses and diamonds that leave a queue on the side away from its packets.

/** A drop or a mark on its way. */
export interface Falling {
  link: number;
  /** Which of the places along the queue. */
  slot: number;
  /** When it begins to move, in ms of the wall clock. */
  born: number;
  isMark: boolean;
}

/** How long one is seen, in ms. */
export const FALL = 700;
/** How far it goes, in pixels. */
export const WAY = 26;
/** How far apart they are at least, along the queue and on their way. */
const APART = 12;
/** Those of one picture begin within so many ms, so that they form no rows. */
const SPREAD = 150;

/** How many places a queue of this width has. */
export function slots(width: number): number {
  return Math.max(1, Math.floor(width / APART));
}

/** Where it is: how far along the queue, how far away from it, and how much of its life has gone. */
export function whereabouts(one: Falling, now: number): { along: number; away: number; age: number } {
  const age = Math.max(0, Math.min(1, (now - one.born) / FALL));
  return { along: (one.slot + 0.5) * APART, away: WAY * age, age };
}

/**
 * Adds one if there is room for it: none covers another, so where drops are many, some are left out.
 */
export function launch(
  falling: Falling[],
  of: { id: number; link: number; isMark: boolean },
  width: number,
  now: number,
): void {
  const count = slots(width);
  const born = now + ((of.id * 61) % SPREAD);
  const gap = (FALL * APART) / WAY;
  for (let tries = 0; tries < count; tries++) {
    const slot = (of.id * 7 + tries) % count;
    const isTaken = falling.some(
      (other) => other.link === of.link && other.slot === slot && Math.abs(other.born - born) < gap,
    );
    if (isTaken) continue;
    falling.push({ link: of.link, slot, born, isMark: of.isMark });
    return;
  }
}
