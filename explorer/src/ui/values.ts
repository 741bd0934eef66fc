// Values of parameters as the text of a scenario has them.

import type { Control } from "../protocol.ts";

/** A control's value as TOML; an empty text takes the key out. */
export function toToml(control: Control, value: number | boolean | string): string {
  if (value === "") return "";
  if (control.kind === "switch") return value ? "true" : "false";
  if (control.kind === "number")
    return control.unit === "" ? plain(value) : JSON.stringify(`${plain(value)}${control.unit}`);
  return JSON.stringify(String(value));
}

function plain(value: number | boolean | string): string {
  const number = Number(value);
  return String(Number.parseFloat(number.toPrecision(10)));
}
