// Numbers as the page writes them.

/** A number with about three significant digits, without trailing zeros. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(1).replace("e+", "e");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A bound with four significant digits, rounded up, so that what is shown holds, too. */
export function atMost(value: number): string {
  const decimals = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(value))));
  // What a bound in binary digits is above its decimal ones does not count.
  const text = (Math.ceil(value * 10 ** decimals * (1 - 1e-12)) / 10 ** decimals).toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A fraction as percent. */
export function percent(fraction: number): string {
  if (!Number.isFinite(fraction)) return "–";
  const value = fraction * 100;
  return `${value >= 10 || value === 0 ? value.toFixed(value >= 99.95 || value === 0 ? 0 : 1) : value.toFixed(2)} %`;
}

/** Seconds as a clock shows them. */
export function seconds(value: number): string {
  return `${value.toFixed(value < 10 ? 3 : 2)} s`;
}

/** The name of a measure without its unit, and its values in the unit that people read. */
export function measure(path: string, unit: string): { name: string; unit: string; text: (value: number) => string } {
  const name = path
    .replace(/^(links|flows|applications)\./, "")
    .replace(/_(s|bps|packets|bytes)$/, "")
    .replaceAll("_", " ");
  const as = (shown: string, factor: number) => ({
    name,
    unit: shown,
    text: (value: number) => number(value * factor),
  });
  if (unit === "s") return as("ms", 1e3);
  if (unit === "fraction") return as("%", 100);
  if (unit === "bps" || unit === "bit/s") return as("Mbit/s", 1e-6);
  return as(unit, 1);
}
