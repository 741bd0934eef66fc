// Several seeds: means over the runs with 95 % intervals, and differences of the two runs on the same seeds.

import type { Bounds, Interval } from "../protocol.ts";
import { atMost, measure } from "./format.ts";
import { paired } from "./paired.ts";
import * as store from "./store.ts";

/** The panel. */
export function Seeds() {
  const [a, b] = store.intervals.value;
  const both = a !== null && b !== null;
  return (
    <div class="seeds">
      <div class="row">
        <label>
          Seeds{" "}
          <select
            value={store.seedCount.value}
            onChange={(event) => {
              store.seedCount.value = Number(event.currentTarget.value);
            }}
          >
            {[3, 5, 10, 20, 30].map((count) => (
              <option key={count} value={count}>
                {count}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="main" disabled={store.measuring.value} onClick={() => void store.measure()}>
          {store.measuring.value ? "Running…" : "Run them"}
        </button>
        <label class="switch">
          <input
            type="checkbox"
            checked={store.follow.value}
            onChange={(event) => {
              store.follow.value = event.currentTarget.checked;
              if (event.currentTarget.checked) void store.measure();
            }}
          />
          Run again after each change
        </label>
      </div>
      <p class="hint">
        Whole runs with the parameters as they are now, seeds 1 to {store.seedCount.value}. Each value is the mean of
        those of the runs, with a 95 % confidence interval by Student’s t.
        {both && " Differences are B − A on the same seeds, with intervals of their own."} The tables of{" "}
        <code>perhop run</code> estimate shares of packets, percentiles, skewed measures and rare events otherwise, so
        their intervals differ from these.
      </p>
      {a && (
        <p class="hint" aria-live="polite">
          {a.done} of {a.seeds.length} runs{b ? ` of A, ${b.done} of B` : ""},{" "}
          {Math.round((a.wallMs ?? 0) + (b?.wallMs ?? 0))} ms.
        </p>
      )}
      {a && (
        // A wide table scrolls by itself.
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <section class="scroll" aria-label="Intervals" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">measure</th>
                <th scope="col">{both ? "A" : "mean of the runs"}</th>
                {both && <th scope="col">B</th>}
                {both && <th scope="col">B − A</th>}
                {!both && <th scope="col">95 % interval</th>}
              </tr>
            </thead>
            <tbody>
              {a.rows.map((row) => (
                <Row
                  key={row.name}
                  row={row}
                  other={b?.rows.find(({ name }) => name === row.name)}
                  both={both}
                  atMost={[boundOf(a.bounds, row.name), boundOf(b?.bounds, row.name)]}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

/** What all runs agree in is not certain by that: no interval says how far it may be otherwise. */
const ALIKE = "all runs alike";

function isKnown({ low, high }: Interval): boolean {
  return high > low;
}

/** The bound of a 99th percentile in s; null where there is none. */
function boundOf(bounds: Bounds | undefined, measure: string): number | null {
  const bounded =
    bounds?.links.find(({ name }) => measure === `links.${name}.delay_p99_s`) ??
    bounds?.flows.find(({ name }) => measure === `flows.${name}.one_way_delay_p99_s`);
  return bounded && "at_most_s" in bounded.delay ? bounded.delay.at_most_s : null;
}

function Row(props: {
  row: Interval;
  other: Interval | undefined;
  both: boolean;
  atMost: readonly [number | null, number | null];
}) {
  const { row, other } = props;
  const { name, unit, text } = measure(row.name, row.unit);
  const difference = other ? paired(row.values, other.values) : null;
  const half = (of: Interval) => <small>{isKnown(of) ? ` ± ${text((of.high - of.low) / 2)}` : `, ${ALIKE}`}</small>;
  const runs = ({ values }: Interval) => {
    const known = values.filter((value) => value !== null).length;
    return known < values.length && <small>{` of ${known} of ${values.length} runs; the others have no value`}</small>;
  };
  const most = (which: 0 | 1) => {
    const value = props.atMost[which];
    return value !== null && <small>{` at most ${atMost(value * 1000)}`}</small>;
  };
  return (
    <tr>
      <th scope="row">
        {name}
        {unit && <span class="unit">, {unit}</span>}
      </th>
      <td>
        {text(row.mean)}
        {props.both && half(row)}
        {runs(row)}
        {most(0)}
      </td>
      {props.both && (
        <td>
          {other && text(other.mean)}
          {other && half(other)}
          {other && runs(other)}
          {most(1)}
        </td>
      )}
      {props.both && (
        <td data-verdict={difference?.verdict}>
          {difference && (
            <>
              {difference.mean > 0 ? "+" : ""}
              {text(difference.mean)} ± {text(difference.half)}
              <small>{difference.verdict}</small>
            </>
          )}
        </td>
      )}
      {!props.both && <td>{isKnown(row) ? `${text(row.low)} to ${text(row.high)}` : ALIKE}</td>}
    </tr>
  );
}
