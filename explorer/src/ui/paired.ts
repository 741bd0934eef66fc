// The difference of two runs on the same seeds, with a 95 % interval over seeds (Student's t, paired).

/** Quantiles 0.975 of Student's t with 1, 2, … degrees of freedom. */
const T = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604, 2.1448, 2.1314,
  2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

/** B − A, half of its interval, and what follows from it. */
export interface Difference {
  mean: number;
  half: number;
  verdict: "higher" | "lower" | "cannot tell" | "equal";
}

/** The difference of values in the order of the same seeds, over those that both have; `null` with fewer than two pairs. */
export function paired(a: readonly (number | null)[], b: readonly (number | null)[]): Difference | null {
  const differences = a.flatMap((of, i) => (of === null || typeof b[i] !== "number" ? [] : [b[i] - of]));
  const count = differences.length;
  if (count < 2) return null;
  if (differences.some((value) => !Number.isFinite(value))) return null;
  const mean = differences.reduce((sum, value) => sum + value, 0) / count;
  const variance = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const half = (T[Math.min(count - 1, T.length) - 1] ?? 1.96) * Math.sqrt(variance / count);
  if (mean === 0 && half === 0) return { mean, half, verdict: "equal" };
  return { mean, half, verdict: mean > half ? "higher" : mean < -half ? "lower" : "cannot tell" };
}
