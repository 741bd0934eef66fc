// Fingerprints in the browser, and what is measured: printed, not asserted, because a busy machine is slow.

import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { chromium } from "@playwright/test";
import { expect, open, type Probe, scenario, test } from "./page.ts";

const SEEDS = ["1", "2", "18446744073709551615"];
const NATIVE = process.env.PERHOP_FINGERPRINT ?? "";

test("the runs of the browser are those of native code, byte for byte", async ({ page }) => {
  test.skip(NATIVE === "", "PERHOP_FINGERPRINT names no native program");
  test.setTimeout(600_000);
  await open(page);
  const ids: string[] = await (await page.request.get("gallery/index.json"))
    .json()
    .then((all) => all.map((of: { id: string }) => of.id));
  for (const id of ids) {
    const toml = scenario(id);
    const native = spawnSync(NATIVE, SEEDS, { input: toml, encoding: "utf8" });
    expect(native.status, native.stderr).toBe(0);
    const here = await page.evaluate(
      async ({ toml, seeds }) => {
        const worker = new Worker(new URL("worker.js", location.href), { type: "module" });
        const module = await WebAssembly.compileStreaming(fetch("perhop_explorer.wasm"));
        const ready = new Promise((resolve) => worker.addEventListener("message", resolve, { once: true }));
        worker.postMessage({ module });
        await ready;
        const found: unknown[] = [];
        for (const [id, seed] of seeds.entries()) {
          const answer = new Promise<{ value: unknown }>((resolve) => {
            worker.addEventListener("message", ({ data }) => resolve(data), { once: true });
          });
          worker.postMessage({ id, do: "fingerprint", toml, seed });
          found.push((await answer).value);
        }
        worker.terminate();
        return found;
      },
      { toml, seeds: SEEDS },
    );
    expect(here, id).toEqual(native.stdout.trim().split("\n"));
  }
});

test("measured: bytes of the first load", async ({ page }) => {
  let bytes = 0;
  let compressed = 0;
  const bodies: Promise<void>[] = [];
  page.on("response", (response) => {
    bodies.push(
      response.body().then((body) => {
        bytes += body.length;
        compressed += gzipSync(body).length;
      }),
    );
  });
  await open(page);
  await Promise.all(bodies);
  console.log(
    `first load: ${(compressed / 1e6).toFixed(2)} MB compressed (gzip), ${(bytes / 1e6).toFixed(2)} MB unpacked`,
  );
  expect(compressed).toBeLessThan(3e6);
});

test("measured: from moving a slider to the first changed pixel", async ({ page }) => {
  await open(page);
  await page.waitForTimeout(3000);
  const times = await page.evaluate(async () => {
    const slider = document.querySelector<HTMLInputElement>("input[type=range]");
    const canvas = document.querySelector<HTMLCanvasElement>(".chart canvas");
    const pixels = () => {
      const { width = 0, height = 0 } = canvas ?? {};
      const { data } = canvas?.getContext("2d")?.getImageData(0, 0, width, height) ?? { data: [] };
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) sum = (sum * 31 + (data[i] ?? 0) + 7 * (data[i + 3] ?? 0)) | 0;
      return sum;
    };
    // Paused, so that nothing but the slider changes pixels: the thresholds move.
    const pause = [...document.querySelectorAll("button")].find((button) => button.textContent?.includes("Pause"));
    pause?.click();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const min = document.querySelector<HTMLInputElement>('input[data-path$="thresholds.min"]') ?? slider;
    const found: number[] = [];
    for (let i = 0; i < 11 && min; i++) {
      const before = pixels();
      const began = performance.now();
      min.value = String(Number(min.value) + (i % 2 === 0 ? 20 : -20));
      min.dispatchEvent(new Event("input", { bubbles: true }));
      while (pixels() === before && performance.now() - began < 2000) await new Promise(requestAnimationFrame);
      found.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return found.sort((a, b) => a - b);
  });
  expect(times.at(-1), "the picture changes").toBeLessThan(2000);
  console.log(
    `slider to the first changed pixel: median ${times[5]?.toFixed(0)} ms, longest ${times.at(-1)?.toFixed(0)} ms`,
  );
});

test("a page that is busy is sent no more frames than it takes", async ({ page }) => {
  await open(page);
  await expect
    .poll(() => page.evaluate(() => (globalThis as unknown as Probe).perhopExplorer.store.time.value))
    .toBeGreaterThan(1);
  const frames = await page.evaluate(async () => {
    const { frameTimes } = (globalThis as unknown as Probe).perhopExplorer.store;
    const busy = performance.now() + 2000;
    while (performance.now() < busy);
    const before = frameTimes.length;
    await new Promise((done) => setTimeout(done));
    return frameTimes.length - before;
  });
  expect(frames).toBeLessThanOrEqual(4);
});

test("measured: intervals over 10 seeds of 60 s of 40 flows", async ({ page }) => {
  const toml = `duration = "60s"
links.uplink = { from = "a", to = "b", rate = "10Mbps", delay = "20ms", queue = { aqm = "red", limit = "200p", thresholds = "30/90/0.1" } }
flows = [{ name = "bulk", count = 40, from = "a", to = "b", transport = { tcp = "newreno" } }]
`;
  await open(page);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("tab", { name: "Scenario" }).click();
  await page.locator("#toml").fill(toml);
  await page.locator("#toml").press("Control+Enter");
  await page.getByRole("tab", { name: "Several seeds" }).click();
  for (const round of ["first", "second"]) {
    const began = Date.now();
    await page.getByRole("button", { name: "Run them" }).click();
    await expect(page.getByRole("button", { name: "Run them" })).toBeEnabled({ timeout: 60_000 });
    const said = await page.getByText("10 of 10 runs").textContent();
    console.log(`intervals, ${round} time: ${Date.now() - began} ms on the page (${said})`);
  }
});

test("measured: frame time while running", async ({ baseURL, launchOptions }) => {
  // Without the limit of the display's rate, so that a picture follows the other as soon as it is done.
  for (const [name, more] of [
    ["at the display's rate", []],
    ["unlimited", ["--disable-frame-rate-limit", "--disable-gpu-vsync"]],
  ] as const) {
    const browser = await chromium.launch({ ...launchOptions, args: [...(launchOptions.args ?? []), ...more] });
    const page = await browser.newPage({ ...(baseURL ? { baseURL } : {}), viewport: { width: 1360, height: 900 } });
    await open(page);
    await page.waitForTimeout(5000);
    const pictures = await page.evaluate(() => (globalThis as unknown as Probe).perhopExplorer.pictures);
    const sorted = pictures.slice().sort((a, b) => a - b);
    expect(sorted.length).toBeGreaterThan(10);
    const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1);
    console.log(`frame time ${name}: median ${at(0.5)} ms, 95 %: ${at(0.95)} ms, of ${sorted.length} frames`);
    await browser.close();
  }
});
