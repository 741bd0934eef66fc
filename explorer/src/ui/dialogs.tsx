// Gallery, sharing, exports, comparison and help: dialogs over the page.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { runName } from "./charts.tsx";
import * as exports from "./exports.ts";
import { Marked } from "./marked.tsx";
import { MECHANISMS, type Mechanism, tableFor } from "./mechanisms.ts";
import { SHORTCUTS, shortcutsOn } from "./shortcuts.ts";
import * as store from "./store.ts";

/** The dialog that is open. */
export const dialog = signal<"" | "gallery" | "share" | "export" | "compare" | "help">("");
const link = signal("");
const copied = signal(false);

/** Opens a dialog. */
export async function openDialog(name: typeof dialog.value): Promise<void> {
  if (name === "share") {
    await store.pause();
    copied.value = false;
    link.value = (await store.share()) ?? "";
    if (link.value === "") return;
  }
  dialog.value = name;
}

/** A modal dialog with its heading; Escape and a click beside it close it. */
function Dialog(props: { title: string; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself
    <dialog
      ref={element}
      aria-labelledby="dialog-title"
      onClose={() => {
        dialog.value = "";
      }}
      onClick={(event) => {
        if (event.target === element.current) element.current?.close();
      }}
    >
      <div class="inside">
        <header>
          <h2 id="dialog-title">{props.title}</h2>
          <button type="button" onClick={() => element.current?.close()}>
            Close
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

/** The dialog that is open, if any. */
export function Dialogs() {
  switch (dialog.value) {
    case "gallery":
      return <Gallery />;
    case "share":
      return <Share />;
    case "export":
      return <Export />;
    case "compare":
      return <Compare />;
    case "help":
      return <Help />;
    default:
      return null;
  }
}

function Gallery() {
  return (
    <Dialog title="Scenarios">
      <ul class="cards">
        {store.gallery.value.map((item) => (
          <li key={item.id}>
            <button
              type="button"
              aria-current={store.entry.value?.id === item.id}
              onClick={() => {
                dialog.value = "";
                void store.openEntry(item);
              }}
            >
              <b>{item.title}</b>
              <span>
                <Marked text={item.look} />
              </span>
              <small>{item.source}</small>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Share() {
  return (
    <Dialog title="Share">
      <p>
        This link carries the scenario, the changes that you made, the seed and the time. Nothing is sent to a server:
        the state is in the link.
      </p>
      <label for="link">Link ({link.value.length} characters)</label>
      <input id="link" readOnly value={link.value} onFocus={(event) => event.currentTarget.select()} />
      <div class="row">
        <button
          type="button"
          class="main"
          onClick={async () => {
            try {
              await navigator.clipboard.writeText(link.value);
              copied.value = true;
            } catch {
              store.say("The browser does not let the page copy; the link is in the address bar.", true);
            }
          }}
        >
          Copy
        </button>
        <span aria-live="polite">{copied.value ? "Copied." : "It is in the address bar, too."}</span>
      </div>
    </Dialog>
  );
}

function Export() {
  const whiches = store.second.value ? ([0, 1] as const) : ([0] as const);
  return (
    <Dialog title="Export">
      <p>
        <button type="button" class="main" onClick={() => void exports.picture()}>
          PNG of the charts
        </button>
      </p>
      {whiches.map((which) => (
        <fieldset key={which}>
          <legend>{whiches.length > 1 ? runName(which) : "The run so far"}</legend>
          <div class="row">
            <button type="button" onClick={() => void exports.data("samples", which)}>
              CSV of the samples
            </button>
            <button type="button" onClick={() => void exports.data("events", which)}>
              CSV of drops and marks
            </button>
            <button type="button" onClick={() => void exports.data("outcome", which)}>
              JSON of the result
            </button>
            <button type="button" onClick={() => exports.toml(which)}>
              TOML of the scenario
            </button>
          </div>
        </fieldset>
      ))}
      <p class="hint">
        {store.changes.value.length === 0 ? (
          <>
            <code>perhop run scenario.toml</code> runs the TOML file and gives the same numbers.
          </>
        ) : (
          "You changed parameters while the run went on. The TOML file has the latest values from time zero on, so that it gives other numbers; comments in it say when they changed. The link (Share) replays the changes at their times."
        )}
      </p>
    </Dialog>
  );
}

function Compare() {
  const shown = store.first.value;
  const info = shown?.opened.links[store.linkOf(shown.opened)];
  const start = async (mechanism: Mechanism | null) => {
    dialog.value = "";
    await store.compareWith(
      mechanism && info ? { link: info.name, table: tableFor(mechanism, info), label: mechanism.name } : null,
    );
  };
  return (
    <Dialog title="Compare on the same seed">
      <p>
        B is a copy of A with another mechanism at <code>{info?.name}</code>. Then change what you like: the parameters
        and the text are those of A or of B, as you choose there.
      </p>
      <ul class="chips">
        {MECHANISMS.map((mechanism) => (
          <li key={mechanism.name}>
            <button type="button" onClick={() => void start(mechanism)}>
              {mechanism.name}
            </button>
          </li>
        ))}
        <li>
          <button type="button" onClick={() => void start(null)}>
            the same (change its parameters)
          </button>
        </li>
      </ul>
      {store.second.value && (
        <button
          type="button"
          onClick={() => {
            dialog.value = "";
            void store.compare(null);
          }}
        >
          Remove B
        </button>
      )}
    </Dialog>
  );
}

function Help() {
  return (
    <Dialog title="Help">
      <p>
        This page runs perhop’s simulator in your browser: the code that reproduces the papers’ figures. Move a
        parameter: it acts at once. Nothing leaves this computer.
      </p>
      <table>
        <caption>Keys</caption>
        <tbody>
          {SHORTCUTS.map((shortcut) => (
            <tr key={shortcut.key}>
              <th scope="row">
                <kbd>{shortcut.key === " " ? "Space" : shortcut.key}</kbd>
              </th>
              <td>{shortcut.does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label class="switch">
        <input
          type="checkbox"
          checked={shortcutsOn.value}
          onChange={(event) => {
            shortcutsOn.value = event.currentTarget.checked;
          }}
        />
        Keys act (switch off if they are in the way of a screen reader)
      </label>
    </Dialog>
  );
}
