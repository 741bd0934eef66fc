// What the browser tests share.

import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test as base, expect, type Page } from "@playwright/test";
import { type Change, encodeState, type PageState } from "../../src/state.ts";

export { expect };
export const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(HERE, "../../..");
const SHOTS = join(ROOT, "target/explorer");
mkdirSync(SHOTS, { recursive: true });

/** A test that fails where the page throws, or where the content security policy stops something. */
export const test = base.extend<{ errors: string[] }>({
  errors: [
    async ({ page }, use) => {
      const errors: string[] = [];
      page.on("pageerror", (error) => errors.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") errors.push(message.text());
      });
      await use(errors);
      expect(errors).toEqual([]);
    },
    { auto: true },
  ],
});

/** What the page lets tests see. */
export interface Probe {
  perhopExplorer: {
    store: {
      time: { value: number };
      changes: { value: Change[] };
      seek(timeS: number): Promise<void>;
      playing: { value: boolean };
      drawn: { value: number };
      frameTimes: number[];
      drafts: { value: [string, string] };
    };
    pictures: number[];
  };
}

/** Opens the page, and waits until a run is on it. */
export async function open(page: Page, fragment = "#g=red"): Promise<void> {
  await page.goto(`index.html${fragment}`);
  await expect(page.locator(".chart canvas").first()).toBeVisible();
}

/** A state of the page with this scenario. */
export function stateOf(toml: string, more: Partial<PageState> = {}): PageState {
  const none = { compare: null, changes: [], link: "", gallery: "", file: "" };
  return { toml, seed: "1", atS: 2, speed: 1, panel: "parameters", ...none, ...more };
}

/** Opens the page with this scenario. */
export async function openText(page: Page, toml: string, more: Partial<PageState> = {}): Promise<void> {
  await open(page, await encodeState(stateOf(toml, more)));
}

/** The simulated time. */
export function time(page: Page): Promise<number> {
  return page.evaluate(() => (globalThis as unknown as Probe).perhopExplorer.store.time.value);
}

/** What was changed while the run went on. */
export function changes(page: Page): Promise<Change[]> {
  return page.evaluate(() => [...(globalThis as unknown as Probe).perhopExplorer.store.changes.value]);
}

/** Goes to this time. */
export function seek(page: Page, timeS: number): Promise<void> {
  return page.evaluate((at) => (globalThis as unknown as Probe).perhopExplorer.store.seek(at), timeS);
}

/** Lets it run until this time, and pauses. */
export async function until(page: Page, timeS: number): Promise<void> {
  await expect.poll(() => time(page), { timeout: 60_000 }).toBeGreaterThan(timeS);
  await page.getByRole("button", { name: "Pause" }).click();
  await still(page);
}

/** Waits until no frame is under way any more: the time stays as it is. */
export async function still(page: Page): Promise<void> {
  for (let before = -1, now = await time(page); before !== now; now = await time(page)) {
    before = now;
    await page.waitForTimeout(200);
  }
}

/** A picture for people to look at. */
export async function shot(page: Page, name: string, fullPage = false): Promise<void> {
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage });
}

/** A scenario of the gallery. */
export function scenario(id: string): string {
  return readFileSync(join(ROOT, "explorer/gallery", `${id}.toml`), "utf8");
}
