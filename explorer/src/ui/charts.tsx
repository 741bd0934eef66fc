// The charts of the page: each of the first run, and beside it the same of the second on the same axes.

import { signal } from "@preact/signals";
import { bounds } from "./bounding.ts";
import { Chart, type ChartProps } from "./chart.tsx";
import { delays, FIGURES } from "./delays.ts";
import { number } from "./format.ts";
import * as store from "./store.ts";
import { palette } from "./theme.ts";
import * as views from "./views.ts";

/** How many seconds the charts show; 0 is the whole run. */
export const span = signal(0);
const SPANS: [number, string][] = [
  [0, "the whole run"],
  [20, "the last 20 s"],
  [5, "the last 5 s"],
  [1, "the last second"],
];

/** The names of the two runs. */
export function runName(which: 0 | 1): string {
  const label = which === 1 ? store.compareLabel.value : "";
  return which === 0 ? "A" : label === "" ? "B" : `B: ${label}`;
}

interface Made {
  which: 0 | 1;
  view: views.View;
}

/** The common top of the axes; the first moments of a run, when all flows begin at once, may lie above. */
function tops(made: Made[], after: number): number | null {
  if (made.some(({ view }) => view.unit !== made[0]?.view.unit)) return null;
  let top = 0;
  for (const { view } of made) {
    for (const { value } of view.levels ?? []) top = Math.max(top, value);
    for (const { values, points } of view.lines) {
      if (points) continue;
      const from = Math.max(
        0,
        view.x.findIndex((time) => time >= after),
      );
      for (let i = from; i < values.length; i++) top = Math.max(top, values[i] ?? 0);
    }
  }
  return top > 0 ? top * 1.08 : null;
}

/** The part of a run whose peaks may be cut off. */
const START = 0.08;

function Row(props: {
  id: string;
  title: string;
  hint: string;
  empty: string;
  make: (shown: store.Shown) => views.View | null;
  more?: (shown: store.Shown) => string;
}) {
  const made: Made[] = [];
  store.runs.value.forEach((shown, which) => {
    const view = shown && props.make(shown);
    if (view) made.push({ which: which as 0 | 1, view });
  });
  if (made.length === 0) return null;
  const pair = store.second.value !== null;
  const now = store.time.peek();
  const duration = store.first.value?.opened.durationS ?? 1;
  const top = tops(made, props.id !== "queue" && now > 2 * START * duration ? START * duration : 0);
  const range: [number, number] =
    span.value === 0 ? [0, duration] : [Math.max(0, now - span.value), Math.max(now, span.value)];
  return (
    <>
      {made.map(({ which, view }) => {
        const shown = store.runs.value[which];
        const chart: ChartProps = {
          id: `${props.id}-${which}`,
          title: pair ? `${props.title} · ${runName(which)}` : props.title,
          hint: view.lines.length === 0 ? props.empty : `${props.hint} ${(shown && props.more?.(shown)) ?? ""}`,
          unit: view.unit,
          x: view.x,
          xUnit: "time, s",
          xRange: range,
          yRange: [0, top],
          lines: view.lines,
          cursor: now,
        };
        if (view.levels) chart.levels = view.levels;
        return <Chart key={which} {...chart} />;
      })}
    </>
  );
}

/** All charts. */
export function Charts() {
  void store.drawn.value;
  const colors = palette.value;
  const shown = store.first.value;
  if (!shown) return null;
  const pair = store.second.value !== null;
  const link = (of: store.Shown) => store.linkOf(of.opened);
  const over = pair
    ? views.delayOver(
        store.runs.value.map((run) => run?.history ?? null),
        store.runs.value.map((run) => (run ? store.linkOf(run.opened) : -1)),
        [runName(0), runName(1)],
        colors,
      )
    : null;
  const name = shown.opened.links[link(shown)]?.name ?? "";
  const unit = views.queueUnit(store.runs.value.map((run) => (run ? run.opened.links[link(run)] : undefined)));
  return (
    <section aria-label="Charts" class={pair ? "charts pair" : "charts"}>
      <Row
        id="queue"
        title={`Queue of ${name}`}
        hint="Thick lines are the averages that the mechanism compares with its thresholds, drawn as named levels."
        empty="Nothing waits yet."
        make={(of) => views.queue(of.history, link(of), unit, colors)}
      />
      <Row
        id="losses"
        title="Drops and marks"
        hint="Packets a second, by reason."
        more={(of) => views.lossesByColor(of.history, link(of))}
        empty="No packet has been dropped or marked."
        make={(of) => views.losses(of.history, link(of), colors)}
      />
      <Row
        id="throughput"
        title="Throughput and profiles"
        hint="What receivers got in the last second; named levels are the contracted rates of the classes."
        empty="Nothing has been delivered."
        make={(of) => views.throughput(of.history, colors)}
      />
      <Row
        id="windows"
        title="Congestion windows"
        hint="A line for each flow, up to 16 of them."
        empty="No flow has a window."
        make={(of) => views.windows(of.history, colors)}
      />
      <Row
        id="gauges"
        title="State of the mechanism"
        hint="What it adapts, such as its drop probability."
        empty=""
        make={(of) => views.gauges(of.history, link(of), colors)}
      />
      {over && (
        <Chart
          id="delays"
          title="Queueing delay of both"
          hint="What a packet would wait that came at this time."
          unit="ms"
          x={over.x}
          xUnit="time, s"
          xRange={
            span.value === 0
              ? [0, shown.opened.durationS]
              : [Math.max(0, store.time.peek() - span.value), Math.max(store.time.peek(), span.value)]
          }
          lines={over.lines}
          levels={over.levels ?? []}
        />
      )}
      <Waits />
    </section>
  );
}

/** How long packets waited, and what no packet waits longer. */
function Waits() {
  void store.drawn.value;
  const pair = store.second.value !== null;
  const waits = store.runs.value.flatMap((run, which) => {
    if (!run) return [];
    const link = run.opened.links[store.linkOf(run.opened)]?.name ?? "";
    const found = bounds.value[which as 0 | 1];
    const changed = store.changes.value.findLast((change) => change.which === which);
    const name = pair ? runName(which as 0 | 1) : "";
    const histograms = run.history.histograms.get(store.linkOf(run.opened)) ?? [];
    return [{ name, link, histograms, bounds: found, changedS: changed?.atS ?? null }];
  });
  const view = delays(waits, palette.value);
  if (!view) return null;
  return (
    <Chart
      id="delay"
      title="Distribution of queueing delay"
      hint={`Percent of packets that waited no longer, since the warm-up.${view.uprights.length > 0 ? " At most: in any run, warm-up included." : ""}`}
      columns={FIGURES}
      remarks={view.remarks}
      unit="%"
      x={view.x}
      xUnit="queueing delay, ms"
      xRange={view.xRange}
      yRange={[0, 100]}
      lines={view.lines}
      uprights={view.uprights}
    />
  );
}

/** Which link, and how much of the run. */
export function ChartChoices() {
  const shown = store.first.value;
  if (!shown) return null;
  const links = shown.opened.links.filter((link) => link.measured);
  return (
    <div class="choices">
      <label>
        Link{" "}
        <select
          value={shown.opened.links[store.linkOf(shown.opened)]?.name ?? ""}
          onChange={(event) => {
            store.linkName.value = event.currentTarget.value;
          }}
        >
          {links.map((link) => (
            <option key={link.name} value={link.name}>
              {link.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Show{" "}
        <select
          value={span.value}
          onChange={(event) => {
            span.value = Number(event.currentTarget.value);
          }}
        >
          {SPANS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Key figures, of A and B side by side. */
export function Figures() {
  void store.drawn.value;
  const [a, b] = store.runs.value;
  if (!a) return null;
  const over = span.value === 0 ? 5 : span.value;
  const [of, other] = [a, b].map((run) => (run ? views.figures(run.history, store.linkOf(run.opened), over) : null));
  return (
    <dl class="figures" aria-label={`Key figures over the last ${over} s`}>
      {of?.map((figure, i) => {
        const beside = other?.[i];
        if (figure.name === "marked" && !figure.value && !beside?.value) return null;
        return (
          <div key={figure.name}>
            <dt>{figure.name}</dt>
            <dd>
              <Value run={other ? "A" : ""} figure={figure} />
              {beside && <Value run="B" figure={beside} />}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Value(props: { run: string; figure: views.Figure }) {
  const { value, unit } = props.figure;
  return (
    <span class={props.run === "B" ? "value second" : "value"}>
      {props.run && <i>{props.run}</i>}
      <b>{value === null ? "–" : number(value)}</b> {unit}
    </span>
  );
}
