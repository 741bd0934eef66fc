// The scenario as text, with the program's own messages at the line.

import { useEffect, useRef } from "preact/hooks";
import type { Which } from "../protocol.ts";
import { RunChoice } from "./controls.tsx";
import { Marked } from "./marked.tsx";
import * as store from "./store.ts";

const LINE = 19;

/** The text of the run whose panel is shown. */
export function Editor() {
  const which = store.target.value;
  const text = store.drafts.value[which];
  const problem = store.problems.value[which];
  const runs = store.runs.value[which]?.opened.toml;
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const lines = text.split("\n").length;
  const edited = runs !== undefined && runs !== text;
  const scroll = () => {
    if (gutter.current && area.current) gutter.current.scrollTop = area.current.scrollTop;
  };
  const goTo = () => {
    const element = area.current;
    if (!element || !problem?.line) return;
    const start =
      text
        .split("\n")
        .slice(0, problem.line - 1)
        .join("\n").length +
      (problem.line > 1 ? 1 : 0) +
      (problem.column ?? 1) -
      1;
    element.focus();
    element.setSelectionRange(start, start + (problem.length ?? 1));
    element.scrollTop = Math.max(0, (problem.line - 4) * LINE);
  };
  return (
    <div class="editor">
      <RunChoice />
      <label for="toml">Scenario (TOML); Ctrl+Enter applies it</label>
      <div class="text">
        <div class="gutter" ref={gutter} aria-hidden="true">
          {Array.from({ length: lines }, (_, i) => (
            <div key={i} class={problem?.line === i + 1 ? "bad" : ""}>
              {i + 1}
            </div>
          ))}
        </div>
        <textarea
          id="toml"
          ref={area}
          value={text}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          aria-invalid={problem !== null}
          aria-describedby={problem ? "toml-problem" : undefined}
          onScroll={scroll}
          onInput={(event) => {
            store.setDraft(which, event.currentTarget.value);
            clearTimeout(timer.current);
            timer.current = setTimeout(() => void store.check(which), 200);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void store.apply(which);
            }
          }}
        />
      </div>
      {problem && (
        <p class="wrong" id="toml-problem" role="alert">
          {problem.line !== null && (
            <button type="button" class="link" onClick={goTo}>
              Line {problem.line}
            </button>
          )}
          {problem.line !== null && ": "}
          {problem.key && <code>{problem.key}</code>}
          {problem.key && ": "}
          <Marked text={problem.text} />
        </p>
      )}
      <div class="row">
        <button type="button" class="main" disabled={!edited} onClick={() => void store.apply(which)}>
          Apply
        </button>
        <button
          type="button"
          disabled={!edited}
          onClick={() => {
            store.setDraft(which, runs ?? "");
            void store.check(which);
          }}
        >
          Discard edits
        </button>
        {!problem && <span class="hint">{edited ? "Edited, not running yet." : runningHint(which)}</span>}
      </div>
      <Notices />
    </div>
  );
}

function runningHint(which: Which): string {
  const first = store.changes.value.find((change) => change.which === which);
  return first
    ? `This text runs since you changed it during the run; until ${first.atS.toFixed(2)} s it had other values.`
    : "This text runs.";
}

function Notices() {
  const notices = store.shown.value?.opened.notices ?? [];
  if (notices.length === 0) return null;
  return (
    <section class="notices" aria-label="Warnings">
      <h3>Warnings</h3>
      <ul>
        {notices.map((notice) => (
          <li key={`${notice.key} $<Marked text={notice.text} />`}>
            {notice.line !== null && `Line ${notice.line}: `}
            {notice.key && <code>{notice.key}</code>} <Marked text={notice.text} />
          </li>
        ))}
      </ul>
    </section>
  );
}
