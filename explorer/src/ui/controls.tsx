// Sliders, switches and choices for a scenario's parameters, as the engine lists them from the schema.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Control } from "../protocol.ts";
import { runName } from "./charts.tsx";
import { Marked } from "./marked.tsx";
import { type Range, rangeOf } from "./range.ts";
import * as store from "./store.ts";
import { toToml } from "./values.ts";

const filter = signal("");

/** The parameters of the run whose panel is shown. */
export function Controls() {
  const shown = store.shown.value;
  if (!shown) return null;
  const { controls } = shown.opened;
  const wanted = store.entry.value?.controls ?? [];
  const first = wanted.flatMap((path) => controls.find((control) => control.path === path) ?? []);
  const rest = controls.filter((control) => !first.includes(control));
  const search = filter.value.trim().toLowerCase();
  const found = rest.filter(({ path, doc }) => search === "" || `${path} ${doc}`.toLowerCase().includes(search));
  const groups = new Map<string, Control[]>();
  for (const control of found) groups.set(control.group, [...(groups.get(control.group) ?? []), control]);
  return (
    <div class="controls">
      <RunChoice />
      <label class="switch">
        <input
          type="checkbox"
          checked={store.wholeRun.value}
          onChange={(event) => {
            store.wholeRun.value = event.currentTarget.checked;
          }}
        />
        Changes act on the whole run (it begins again, same seed); otherwise from now on
      </label>
      {first.length > 0 && (
        <fieldset>
          <legend>First to try</legend>
          {first.map((control) => (
            <Field key={keyOf(control)} control={control} isAlone />
          ))}
        </fieldset>
      )}
      <label class="search">
        Find a parameter{" "}
        <input
          type="search"
          value={filter.value}
          onInput={(event) => {
            filter.value = event.currentTarget.value;
          }}
        />
      </label>
      {[...groups].map(([group, members]) => (
        <Group
          key={group}
          name={group}
          members={members}
          open={search !== "" || (first.length === 0 && group.startsWith("links"))}
          openMore={search !== ""}
        />
      ))}
      {found.length === 0 && <p class="hint">No parameter matches.</p>}
    </div>
  );
}

/** The parameters of a link or of flows: those of the text, and folded those that it leaves out. */
function Group(props: { name: string; members: Control[]; open: boolean; openMore: boolean }) {
  const { name, members } = props;
  const optional = store.optional.value;
  const given = members.filter(({ path }) => !optional.has(path));
  const more = members.filter(({ path }) => optional.has(path));
  const set = more.filter(({ isSet }) => isSet).length;
  const fields = (shown: Control[]) => shown.map((control) => <Field key={keyOf(control)} control={control} />);
  return (
    <details open={props.open}>
      <summary>
        {name} <span class="count">{members.length}</span>
      </summary>
      {fields(given)}
      {more.length > 0 && (
        <details class="more" open={props.openMore}>
          <summary>
            More parameters{" "}
            <span class="count">
              {more.length}, {set === 0 ? "all by default" : `${set} set`}
            </span>
          </summary>
          {fields(more)}
        </details>
      )}
    </details>
  );
}

/** Whether the panel shows A or B. */
export function RunChoice() {
  if (!store.second.value) return null;
  return (
    <fieldset class="runs">
      <legend>Of</legend>
      {([0, 1] as const).map((which) => (
        <label key={which}>
          <input
            type="radio"
            name="run"
            checked={store.target.value === which}
            onChange={() => {
              store.target.value = which;
            }}
          />
          {runName(which)}
        </label>
      ))}
    </fieldset>
  );
}

/** A field is that of one parameter of one run of one scenario. */
function keyOf(control: Control): string {
  return `${store.subject.value} ${store.target.value} ${control.path}`;
}

/** A parameter with its name; `isAlone` where no heading above it says whose it is. */
function Field(props: { control: Control; isAlone?: boolean }) {
  const { control } = props;
  const id = `c-${store.target.value}-${control.path.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  const which = store.target.value;
  const problem = store.problems.value[which];
  const wrong = problem?.key === control.path ? problem.text : "";
  const send = (value: number | boolean | string) => void store.set(control.path, toToml(control, value), which);
  return (
    <div class={control.isSet ? "field" : "field default"}>
      <div class="name">
        <label for={id}>
          <code>{control.label}</code>
          <span class={props.isAlone ? "whose" : "unseen"}> of {control.group}</span>
          {!control.live && (
            <span class="restarts" title="A change begins the run again, on the same seed">
              {" "}
              ↺<span class="unseen"> begins the run again</span>
            </span>
          )}
        </label>
        <Default control={control} onReset={() => send("")} />
      </div>
      {control.kind === "switch" && (
        <input
          id={id}
          type="checkbox"
          checked={control.value === true}
          onChange={(event) => send(event.currentTarget.checked)}
        />
      )}
      {control.kind === "choice" && (
        <select id={id} value={String(control.value ?? "")} onChange={(event) => send(event.currentTarget.value)}>
          {control.value === null && <option value="">as by default</option>}
          {control.choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
      {control.kind === "text" && (
        <Text
          id={id}
          value={String(control.value ?? "")}
          example={control.value === null ? control.text : ""}
          onChange={send}
        />
      )}
      {control.kind === "number" && <NumberField id={id} control={control} onChange={send} />}
      {control.doc && (
        <p class="doc">
          <Marked text={control.doc} />
        </p>
      )}
      {wrong && (
        <p class="wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}

/** The default that acts, or the way back to it. */
function Default(props: { control: Control; onReset: () => void }) {
  const { control } = props;
  if (control.default === "") return null;
  if (!control.isSet) return <span class="as-default">default {control.default}</span>;
  return (
    <button
      type="button"
      class="reset"
      aria-label={`${control.label} of ${control.group}: back to the default, ${control.default}`}
      title="Takes the key out of the text"
      onClick={props.onReset}
    >
      ↶ default {control.default}
    </button>
  );
}

function Text(props: { id: string; value: string; example: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(props.value);
  useEffect(() => setText(props.value), [props.value]);
  return (
    <input
      id={props.id}
      value={text}
      spellcheck={false}
      placeholder={props.example && `such as ${props.example}`}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}

const STEPS = 400;

/** Where on the slider a value is, from 0 to STEPS, on a scale of factors. */
function toSlider({ min, max }: Range, value: number): number {
  const low = Math.max(min, max * 1e-6, Number.MIN_VALUE);
  if (value <= low) return 0;
  return (STEPS * Math.log(value / low)) / Math.log(max / low);
}

function fromSlider({ min, max, integer }: Range, at: number): number {
  if (at <= 0) return min;
  if (at >= STEPS) return max;
  const low = Math.max(min, max * 1e-6, Number.MIN_VALUE);
  const value = Number((low * (max / low) ** (at / STEPS)).toPrecision(3));
  return integer ? Math.round(value) : value;
}

function NumberField(props: { id: string; control: Control; onChange: (value: number) => void }) {
  const { control } = props;
  // Without a value there is nothing for a slider to move.
  const isKnown = control.value !== null;
  const given = isKnown ? Number(control.value) : Number.NaN;
  const shown = isKnown ? String(given) : "";
  const [value, setValue] = useState(given);
  const [text, setText] = useState(shown);
  const [held, setHeld] = useState(false);
  const setting = store.setting.value;
  useEffect(() => {
    // What comes back while one still moves is older than what one sees.
    if (held || setting) return;
    setValue(given);
    setText(shown);
  }, [given, shown, held, setting]);
  const kept = useRef<Range | null>(null);
  const range = rangeOf(control, kept.current, held || setting);
  kept.current = range;
  const log = range.log && range.max > 0;
  const slide = (raw: number) => {
    const next = log ? fromSlider(range, raw) : Number(raw.toPrecision(10));
    setValue(next);
    setText(String(next));
    props.onChange(next);
  };
  return (
    <div class="number">
      {isKnown && (
        <input
          type="range"
          aria-label={`${control.label} of ${control.group}, slider`}
          aria-valuetext={`${value} ${control.unit}`}
          data-path={control.path}
          min={log ? 0 : range.min}
          max={log ? STEPS : range.max}
          step={log ? 1 : range.step}
          value={log ? toSlider(range, value) : value}
          onPointerDown={() => setHeld(true)}
          onPointerUp={() => setHeld(false)}
          onPointerCancel={() => setHeld(false)}
          onChange={() => setHeld(false)}
          onInput={(event) => slide(Number(event.currentTarget.value))}
        />
      )}
      <input
        id={props.id}
        class="exact"
        inputMode="decimal"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => {
          const next = Number(event.currentTarget.value.replace(",", "."));
          if (event.currentTarget.value.trim() === "" || !Number.isFinite(next)) {
            if (isKnown || event.currentTarget.value.trim() !== "") {
              store.say(`${control.path}: expected a number, such as ${isKnown ? given : "0.5"}.`, true);
            }
            setText(shown);
            return;
          }
          setValue(next);
          props.onChange(next);
        }}
      />
      <span class="unit">{control.unit}</span>
    </div>
  );
}
