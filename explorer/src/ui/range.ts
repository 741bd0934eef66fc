// The range of a slider: it stays as it is while the slider is held and while the value lies inside.

import type { Control } from "../protocol.ts";

export type Range = Pick<Control, "unit" | "min" | "max" | "step" | "log" | "integer">;

/**
 * The range that a control's slider has now. The engine's range follows the value; a slider whose range did so would run away from the
 * hand that moves it. It takes the engine's range where the value has reached an end of its own, or lies beyond.
 */
export function rangeOf(control: Control, before: Range | null, isHeld: boolean): Range {
  const value = Number(control.value);
  const { unit, min, step, log, integer } = control;
  const fresh = { unit, min, max: Math.max(control.max, value), step, log, integer };
  if (before === null || before.unit !== unit) return fresh;
  if (isHeld) return before;
  const isAbove = value > before.max || (value === before.max && fresh.max > before.max);
  const isBelow = value < before.min || (value === before.min && fresh.min < before.min);
  return isAbove || isBelow ? fresh : before;
}
