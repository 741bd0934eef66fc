// The page as a whole.

import { useEffect, useRef } from "preact/hooks";
import { PANELS, type Panel } from "../state.ts";
import { ChartChoices, Charts, Figures } from "./charts.tsx";
import { Controls } from "./controls.tsx";
import { Dialogs, openDialog } from "./dialogs.tsx";
import { Editor } from "./editor.tsx";
import { Marked } from "./marked.tsx";
import { Network } from "./network.tsx";
import { Seeds } from "./seeds.tsx";
import * as store from "./store.ts";
import { type ThemeChoice, themeChoice } from "./theme.ts";
import { Transport } from "./transport.tsx";
import { Why } from "./why.tsx";

const NAMES: Record<Panel, string> = {
  parameters: "Parameters",
  scenario: "Scenario",
  why: "Why dropped?",
  seeds: "Several seeds",
};

/** Everything. */
export function App() {
  const shown = store.first.value;
  const entry = store.entry.value;
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the charts
      </button>
      <header class="top">
        <h1>
          <img src="icon.svg" alt="" width="26" height="26" /> perhop explorer
        </h1>
        <nav aria-label="Page">
          <button type="button" onClick={() => void openDialog("gallery")} aria-keyshortcuts="g">
            Scenarios
          </button>
          <button type="button" onClick={() => void openDialog("compare")} aria-keyshortcuts="c">
            Compare
          </button>
          <button type="button" onClick={() => void openDialog("share")} aria-keyshortcuts="s">
            Share
          </button>
          <button type="button" onClick={() => void openDialog("export")} aria-keyshortcuts="x">
            Export
          </button>
          <button type="button" onClick={() => void openDialog("help")} aria-keyshortcuts="?">
            Help
          </button>
          <select
            aria-label="Colors"
            value={themeChoice.value}
            onChange={(event) => {
              themeChoice.value = event.currentTarget.value as ThemeChoice;
            }}
          >
            <option value="system">System colors</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </nav>
      </header>
      <Message />
      <main id="main">
        {shown ? (
          <div class="stage">
            <div class="left">
              <section class="intro" aria-label="Scenario">
                <h2>{shown.opened.title || entry?.title || "A scenario of your own"}</h2>
                {entry?.look && (
                  <p>
                    <Marked text={entry.look} />
                  </p>
                )}
              </section>
              <Bar />
              <div class={store.second.value ? "networks pair" : "networks"} id="charts" tabIndex={-1}>
                <Network which={0} />
                {store.second.value && <Network which={1} />}
              </div>
              <ChartChoices />
              <Charts />
            </div>
            <Side />
          </div>
        ) : (
          <p class="waiting">{store.message.value?.bad ? "No scenario runs." : "Loading the simulator…"}</p>
        )}
      </main>
      <Dialogs />
    </>
  );
}

/** The controls and the key figures, which stay in sight: what gets the focus comes into sight below them. */
function Bar() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const bar = place.current;
    if (!bar) return;
    const parts = [bar, ...bar.children];
    const page = document.documentElement;
    const observer = new ResizeObserver(() => {
      const covering = parts.filter((part) => getComputedStyle(part).position === "sticky");
      const height = Math.max(0, ...covering.map((part) => part.getBoundingClientRect().height));
      page.style.scrollPaddingTop = `${Math.ceil(height) + 8}px`;
    });
    for (const part of [...parts, page]) observer.observe(part);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="bar" ref={place}>
      <Transport />
      <Figures />
    </div>
  );
}

/** The fragment is the state's, so this is no link. */
function skip(): void {
  document.getElementById("charts")?.focus();
}

function Message() {
  const message = store.message.value;
  useEffect(() => {
    if (!message || message.bad) return;
    const timer = setTimeout(() => {
      if (store.message.value === message) store.message.value = null;
    }, 6000);
    return () => clearTimeout(timer);
  }, [message]);
  return (
    <div class={message?.bad ? "message bad" : "message"} data-shown={message !== null}>
      <span role="status" aria-live="polite">
        {message?.text ?? ""}
      </span>
      {message?.bad && (
        <button
          type="button"
          onClick={() => {
            store.message.value = null;
          }}
        >
          Dismiss
        </button>
      )}
    </div>
  );
}

/** The panels, as tabs: arrow keys go from one to the next. */
function Side() {
  const open = store.panel.value;
  const go = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = PANELS[(PANELS.indexOf(open) + by + PANELS.length) % PANELS.length] ?? open;
    store.panel.value = next;
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside class="side" aria-label="Panels">
      <div role="tablist" aria-label="Panels">
        {PANELS.map((panel) => (
          <button
            key={panel}
            type="button"
            role="tab"
            id={`tab-${panel}`}
            aria-selected={open === panel}
            aria-controls="panel"
            tabIndex={open === panel ? 0 : -1}
            onKeyDown={go}
            onClick={() => {
              store.panel.value = panel;
            }}
          >
            {NAMES[panel]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${open}`}>
        {open === "parameters" && <Controls />}
        {open === "scenario" && <Editor />}
        {open === "why" && <Why />}
        {open === "seeds" && <Seeds />}
      </div>
    </aside>
  );
}
