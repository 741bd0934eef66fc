// Starts the page: the engine in its worker, the gallery, and what the address says.

import { render } from "preact";
import { openSession } from "./engine/session.ts";
import type { GalleryEntry } from "./protocol.ts";
import "uplot/dist/uPlot.min.css";
import "./ui/style.css";
import "./ui/panels.css";
import "./ui/dialogs.css";
import { App } from "./ui/app.tsx";
import { pictures } from "./ui/network.tsx";
import { listen } from "./ui/shortcuts.ts";
import * as store from "./ui/store.ts";

const place = document.getElementById("page");
if (place) {
  place.textContent = "";
  render(<App />, place);
}
listen();

// What the tests measure and compare; it can do no more than the page itself.
Object.assign(globalThis, { perhopExplorer: { store, pictures } });

async function start(): Promise<void> {
  const response = await fetch("gallery/index.json");
  const entries = (await response.json()) as GalleryEntry[];
  await store.begin(await openSession(), entries);
}

start().catch((error: unknown) => {
  store.say(`The page could not start: ${error instanceof Error ? error.message : String(error)}`, true);
});
