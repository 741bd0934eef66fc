// "Why was this packet dropped?": the latest drops and marks at a link, and the rule that decided one of them.

import type { Explanation, Fact } from "../protocol.ts";
import { RunChoice } from "./controls.tsx";
import { number } from "./format.ts";
import * as store from "./store.ts";
import { palette } from "./theme.ts";
import { colorNames, flowName } from "./views.ts";

const LISTED = 40;

/** The panel. */
export function Why() {
  void store.drawn.value;
  const which = store.target.value;
  const shown = store.shown.value;
  if (!shown) return null;
  const { opened, history } = shown;
  const link = store.linkOf(opened);
  const names = colorNames(history, link);
  const latest = history.signals
    .filter((signal) => signal.link === link)
    .slice(-LISTED)
    .reverse();
  const chosen = store.chosen.value;
  const explanation = store.explanation.value;
  return (
    <div class="why">
      <RunChoice />
      {explanation ? (
        <Explained explanation={explanation} names={names} />
      ) : (
        <p>Choose a packet below, or press “Next drop”.</p>
      )}
      <h3>Latest drops and marks at {opened.links[link]?.name}</h3>
      {latest.length === 0 && <p class="hint">None so far.</p>}
      <ol class="signals">
        {latest.map((signal) => (
          <li key={signal.id}>
            <button
              type="button"
              aria-pressed={chosen?.id === signal.id && chosen.which === which}
              onClick={async () => {
                await store.pause();
                await store.explain(signal.id, which);
              }}
            >
              <span class="time">{signal.time.toFixed(4)} s</span>
              <span class="kind" data-mark={signal.isMark}>
                {signal.isMark ? "◇ marked" : "✕ dropped"}
              </span>
              <span>{opened.reasons[signal.reason]}</span>
              {opened.colored && (
                <span class="tag" data-color={signal.color}>
                  {names[signal.color]}
                </span>
              )}
              <span class="flow">{flowName(opened, signal.flow)}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Explained(props: { explanation: Explanation; names: readonly string[] }) {
  const { explanation } = props;
  return (
    <article class="explained" aria-live="polite">
      <p class="sentence">{explanation.sentence}</p>
      <Draw explanation={explanation} />
      <table>
        <caption class="unseen">The numbers that decided</caption>
        <tbody>
          {explanation.facts.map((fact) => (
            <tr key={fact.name}>
              <th scope="row">{fact.name}</th>
              <td>{shown(fact)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {/* The lines are a list: the marked ones decided, which a screen reader hears. */}
      <ol class="rule" aria-label={`The rule of ${explanation.aqm}`}>
        {explanation.rule.map((text, i) => {
          const decided = explanation.decisive.includes(i);
          return (
            <li key={i} class={decided ? "decided" : ""}>
              {decided && <span class="unseen">Decided: </span>}
              <code>{text}</code>
            </li>
          );
        })}
      </ol>
      <p class="source">{explanation.source}</p>
    </article>
  );
}

/** Spans of less than a second in ms; times of the run as the list of drops has them. */
function shown({ name, value, unit, text }: Fact): string {
  if (text !== undefined) return text;
  if (unit === "s" && / (at|since)$/.test(name)) return `${value.toFixed(4)} s`;
  if (unit === "s" && value < 1) return `${exact(value * 1000)} ms`;
  return `${exact(value)} ${unit}`.trimEnd();
}

function exact(value: number): string {
  return Math.abs(value) < 10 && value !== Math.round(value) ? value.toPrecision(4) : number(value);
}

/** The average between its thresholds, and the random number beside the probability. */
function Draw(props: { explanation: Explanation }) {
  const fact = (name: RegExp) => props.explanation.facts.find((of) => name.test(of.name));
  const colors = palette.value;
  const min = fact(/^min/i);
  // Where there are several averages: the one that is compared with this threshold.
  const compared = store.shown.value?.opened.links
    .find((link) => link.name === props.explanation.link)
    ?.lines.find((line) => line.gauge !== null && line.value === min?.value)?.gauge;
  const average = props.explanation.facts.find(({ name }) => name === compared) ?? fact(/^average/i);
  const max = fact(/^max(?!_p|imum p| p)/i);
  const probability = fact(/^(p$|p_a|p,|drop probability|probability|final probability)/i);
  const random = fact(/random/i);
  // In place of a random number: what has added up since the last hit, to which the probability is added.
  const counter = fact(/^counter before$/);
  const sojourn = fact(/^sojourn/);
  const target = fact(/^target$/);
  return (
    <>
      {average && min && max && max.value > 0 && (
        <Scale
          label={`${average.name} ${shown(average)} between min ${shown(min)} and max ${shown(max)}`}
          top={Math.max(max.value * 1.25, average.value * 1.05)}
          ticks={[
            { at: min.value, name: "min" },
            { at: max.value, name: "max" },
          ]}
          range={[min.value, max.value]}
          at={average.value}
          name={average.name}
          color={colors.accent}
        />
      )}
      {sojourn && target && (
        <Scale
          label={`Sojourn time ${shown(sojourn)}, target ${shown(target)}`}
          top={Math.max(target.value, sojourn.value) * 1.3}
          ticks={[{ at: target.value, name: "target" }]}
          range={[target.value, Math.max(target.value, sojourn.value) * 1.3]}
          at={sojourn.value}
          name="sojourn time"
          color={colors.drop}
        />
      )}
      {probability && counter && (
        <Scale
          label={`The counter rose by the probability ${exact(probability.value)} from ${exact(counter.value)} above 1`}
          top={Math.max(1.25, (counter.value + probability.value) * 1.1)}
          ticks={[
            { at: counter.value, name: "before" },
            { at: 1, name: "1" },
          ].filter(({ at }, i) => i === 1 || at < 0.9)}
          range={[counter.value, counter.value + probability.value]}
          at={counter.value + probability.value}
          name="counter"
          color={colors.drop}
        />
      )}
      {probability && random && (
        <Scale
          label={`Random number ${exact(random.value)}, probability ${exact(probability.value)}`}
          top={Math.min(1, Math.max(probability.value, random.value) * 1.3 || 1)}
          ticks={[{ at: probability.value, name: "p" }]}
          range={[0, probability.value]}
          at={random.value}
          name="random number"
          color={colors.drop}
        />
      )}
    </>
  );
}

function Scale(props: {
  label: string;
  top: number;
  ticks: { at: number; name: string }[];
  range: [number, number];
  at: number;
  name: string;
  color: string;
}) {
  const colors = palette.value;
  const x = (value: number) => 8 + (284 * Math.min(value, props.top)) / props.top;
  const at = x(props.at);
  return (
    <svg class="scale" viewBox="0 0 300 52" role="img" aria-label={props.label}>
      <line x1="8" y1="30" x2="292" y2="30" stroke={colors.line} stroke-width="1.5" />
      <rect
        x={x(props.range[0])}
        y="25"
        width={Math.max(0, x(props.range[1]) - x(props.range[0]))}
        height="10"
        fill={props.color}
        opacity="0.28"
      />
      {props.ticks.map((tick) => (
        <g key={tick.name}>
          <line x1={x(tick.at)} y1="22" x2={x(tick.at)} y2="38" stroke={colors.ink} stroke-width="1.5" />
          <text x={x(tick.at)} y="49" text-anchor="middle" font-size="11" fill={colors.muted}>
            {tick.name}
          </text>
        </g>
      ))}
      <path d={`M${at} 29l-5 -9h10z`} fill={props.color} />
      <text
        x={Math.max(46, Math.min(254, at))}
        y="13"
        text-anchor="middle"
        font-size="11"
        font-weight="600"
        fill={colors.ink}
      >
        {props.name}
      </text>
    </svg>
  );
}
