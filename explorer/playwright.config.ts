// Tests of the page in the system's Chromium: `npm run test:browser`. PERHOP_EXPLORER names the built page, PERHOP_CHROMIUM the browser.

import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browser = process.env.PERHOP_CHROMIUM ?? PLACES.find((path) => existsSync(path));
if (browser === undefined) throw new Error("Chromium is not installed; PERHOP_CHROMIUM can name one");
const built = process.env.PERHOP_EXPLORER ?? "../python/perhop/explorer";
if (!existsSync(`${built}/index.html`)) throw new Error(`${built} holds no page; \`make explorer\` builds it`);
const PORT = Number(process.env.PERHOP_EXPLORER_PORT ?? 8531);

export default defineConfig({
  testDir: "tests/browser",
  outputDir: "../target/explorer/results",
  // One at a time: some measure.
  workers: 1,
  // A browser on a loaded machine may be late; a fault fails three times.
  timeout: 240_000,
  expect: { timeout: 30_000 },
  retries: 2,
  reporter: "list",
  use: {
    baseURL: `http://127.0.0.1:${PORT}/`,
    launchOptions: { executablePath: browser, args: ["--no-sandbox"] },
  },
  webServer: { command: `node tests/browser/server.mjs ${PORT}`, url: `http://127.0.0.1:${PORT}/index.html` },
});
