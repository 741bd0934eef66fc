// The look of the page at 1280 and 390 pixels: steady sliders, distinct classes and drops, controls within reach.

import type { Locator, Page } from "@playwright/test";
import { expect, open, openText, scenario, shot, test, until } from "./page.ts";

const LINK = `links.bottleneck = { from = "a", to = "b", rate = "10Mbps", delay = "20ms", queue = { aqm = "red", limit = "200p", thresholds = "30/90/0.1" } }`;

/** Calls before a download. */
const PRIORITY = `duration = "20s"
[links.line]
from = "a"
to = "b"
rate = "10Mbps"
delay = "5ms"
queue = { scheduler = "priority", queues = [
  { name = "voice", match = { dscp = 46 }, rule = { aqm = "drop-tail", limit = "100p" } },
  { name = "data", rule = { aqm = "drop-tail", limit = "100p" } },
] }
[[flows]]
name = "calls"
count = 10
from = "a"
to = "b"
dscp = 46
transport = { udp = "cbr", rate = "80kbps", packet = "200B" }
[[flows]]
name = "bulk"
from = "a"
to = "b"
transport = { tcp = "newreno" }
`;

/** Flows of TCP over a link with RED. */
function flows(count: number): string {
  return `duration = "30s"
${LINK}
flows = [{ name = "bulk", count = ${count}, from = "a", to = "b", transport = { tcp = "newreno" } }]
`;
}

/** A slider's end of its range, and where it is. */
async function standing(slider: Locator): Promise<{ max: number; value: number }> {
  return slider.evaluate((element) => ({
    max: Number((element as HTMLInputElement).max),
    value: Number((element as HTMLInputElement).value),
  }));
}

/** The legend of the chart with this heading. */
function legend(page: Page, heading: string | RegExp): Locator {
  return page.locator(".chart", { has: page.getByRole("heading", { name: heading }) }).locator(".legend");
}

/** Remembers what is written on pictures from the next load on; returns how to read it. */
async function writing(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const texts = new Set<string>();
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      texts.add(text);
      fillText.call(this, text, ...rest);
    };
    Object.assign(globalThis, { texts });
  });
  return () => page.evaluate(() => [...(globalThis as unknown as { texts: Set<string> }).texts]);
}

/** For each of these colors, `#rrggbb`, the rows of a network's picture in which it is, between two shares of its width. */
function rows(
  page: Page,
  colors: readonly string[],
  part: [number, number] = [0, 1],
): Promise<Record<string, number[]>> {
  return page.evaluate(
    ([wanted, [from, to]]) => {
      const canvas = document.querySelector<HTMLCanvasElement>(".network canvas");
      const { width = 0, height = 0 } = canvas ?? {};
      const { data } = canvas?.getContext("2d")?.getImageData(0, 0, width, height) ?? { data: [] };
      const found: Record<string, number[]> = Object.fromEntries(wanted.map((color) => [color, []]));
      for (let y = 0; y < height; y++) {
        const seen = new Set<string>();
        for (let x = Math.round(from * width); x < Math.round(to * width); x++) {
          const at = 4 * (y * width + x);
          if (data[at + 3] !== 255) continue;
          const [r = 0, g = 0, b = 0] = [data[at], data[at + 1], data[at + 2]];
          seen.add(`#${((1 << 24) | (r << 16) | (g << 8) | b).toString(16).slice(1)}`);
        }
        for (const color of wanted) if (seen.has(color)) found[color]?.push(y / devicePixelRatio);
      }
      return found;
    },
    [colors, part] as const,
  );
}

for (const width of [1280, 390]) {
  test.describe(`${width} pixels wide`, () => {
    test.use({ viewport: { width, height: width < 600 ? 844 : 800 } });

    test("a slider's range is fixed while it is held, and grows when its end is reached", async ({ page }) => {
      await openText(page, flows(12));
      await page.locator("summary", { hasText: "flows.bulk" }).click();
      for (const [path, name] of [
        ["flows.bulk.count", "count of flows.bulk, slider"],
        ["links.bottleneck.queue.thresholds.max", "queue thresholds max of links.bottleneck, slider"],
      ]) {
        const slider = page.locator(`input[data-path="${path}"]`);
        await expect(slider).toHaveAttribute("aria-label", name ?? "");
        await slider.scrollIntoViewIfNeeded();
        const before = await standing(slider);
        const box = await slider.boundingBox();
        if (!box) throw new Error("no slider");
        const y = box.y + box.height / 2;
        await page.mouse.move(box.x + 8 + ((box.width - 16) * before.value) / before.max, y);
        await page.mouse.down();
        for (const share of [0.5, 0.7, 0.9, 1]) {
          await page.mouse.move(box.x + 8 + (box.width - 16) * share, y, { steps: 3 });
          await page.waitForTimeout(400);
          const now = await standing(slider);
          expect(now.max, `${path} at ${share}`).toBe(before.max);
          expect(now.value / now.max).toBeGreaterThan(share - 0.1);
          expect(now.value / now.max).toBeLessThanOrEqual(share + 0.1);
        }
        await page.mouse.up();
        await expect.poll(async () => (await standing(slider)).max).toBeGreaterThan(before.max);
        expect((await standing(slider)).value).toBe(before.max);
      }
    });

    test("a hundred flows count as a hundred", async ({ page }) => {
      const texts = await writing(page);
      await openText(page, flows(100), { atS: 12 });
      const line = legend(page, "Throughput and profiles").locator("li").first();
      await expect(line).toContainText("bulk (100 flows)");
      const mbps = async () => Number.parseFloat((await line.locator("b").textContent()) ?? "");
      await expect.poll(mbps).toBeGreaterThan(9);
      await expect(legend(page, "Congestion windows")).toContainText("bulk (16 of 100)");
      expect(await texts()).toContain("bulk ×100");
      await expect(page.locator(".network canvas")).toHaveAttribute("aria-label", /100 flows/);
      await shot(page, `hundred-${width}`);
    });

    test("the bound of waits is a line or an arrow, with its figure in the legend; a change moves it", async ({
      page,
    }) => {
      const drawn = await writing(page);
      const chart = page.locator(".chart", { has: page.getByRole("heading", { name: "Distribution of queueing" }) });
      const row = (name: string) => chart.getByRole("row", { name });
      await openText(page, PRIORITY, { atS: 8 });
      await expect(row("voice")).toHaveText(/2\.241$/);
      await expect(row("data")).toHaveText(/89\.72$/);
      expect(await drawn()).toEqual(expect.arrayContaining(["voice at most 2.241 ms", "data at most 89.72 ms"]));
      await chart.scrollIntoViewIfNeeded();
      await shot(page, `bounds-${width}`);
      // Beyond the axis: an arrow.
      const limit = page.getByRole("textbox", { name: "queue queues[1] rule limit of links.line" });
      await limit.fill("1000");
      await limit.press("Enter");
      await expect(row("data")).toHaveText(/873\.1$/);
      await expect.poll(drawn).toContain("data at most 873.1 ms →");
      await expect(chart).toContainText("This run had other values until 8.00 s");
      await chart.scrollIntoViewIfNeeded();
      await shot(page, `bounds-far-${width}`);
    });

    test("a run that is paused behind its warm-up has its distribution and bound", async ({ page }) => {
      await openText(page, scenario("red"), { atS: 12 });
      await expect(page.getByRole("row", { name: "queueing delay" })).toHaveText(/96\.81$/);
    });

    test("where waits have no bound, the chart says why", async ({ page }) => {
      await openText(page, scenario("asymmetric-best-effort"), { atS: 20 });
      const chart = page.locator(".chart", { has: page.getByRole("heading", { name: "Distribution of queueing" }) });
      await expect(chart).toContainText("No bound: the arrivals of both services together are not below the rate");
      await expect(chart.getByRole("row", { name: "green" })).toHaveText(/none$/);
      await chart.scrollIntoViewIfNeeded();
      await page.getByLabel("Colors").selectOption("dark");
      await shot(page, `bounds-none-${width}`);
    });

    test("no two controls have one name", async ({ page }) => {
      await open(page, "#g=calls-beside-downloads");
      await expect(page.getByText("count of flows.calls")).toBeVisible();
      await expect(page.getByText("count of flows.downloads")).toBeVisible();
      for (const summary of await page.locator(".controls > details > summary").all()) await summary.click();
      const names = await page
        .getByRole("slider")
        .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""));
      expect(names.length).toBeGreaterThan(6);
      expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    });

    test("both queues are charted in one unit, also where one has thresholds and the other a target", async ({
      page,
    }) => {
      await open(page);
      await page.getByRole("button", { name: "Compare" }).click();
      await page.getByRole("button", { name: "codel", exact: true }).click();
      await expect(page.getByText("B: codel").first()).toBeVisible();
      await until(page, 5);
      for (const run of ["A", "B: codel"]) {
        const queue = legend(page, `Queue of bottleneck · ${run}`);
        await expect(queue.locator("li").first()).toContainText(/queue.*packets/);
      }
      await expect(legend(page, "Queueing delay of both").locator("b").first()).toContainText("ms");
      await shot(page, `units-${width}`, true);
    });

    test("calls and downloads differ in color and shape, and the legend names them", async ({ page }) => {
      await open(page, "#g=calls-beside-downloads");
      const key = page.locator(".key");
      await expect(key).toContainText("calls");
      await expect(key).toContainText("downloads");
      await expect(key).not.toContainText(/IN|OUT|green/);
      const kinds = await key.locator("li").evaluateAll((all) =>
        all.slice(0, 2).map((one) => {
          const shape = one.querySelector("circle, polygon");
          return { shape: `${shape?.tagName} ${shape?.getAttribute("points")}`, color: shape?.getAttribute("fill") };
        }),
      );
      expect(kinds[0]?.color).not.toBe(kinds[1]?.color);
      expect(kinds[0]?.shape).not.toBe(kinds[1]?.shape);
      await expect
        .poll(() =>
          seenIn(
            page,
            kinds.map(({ color }) => color ?? ""),
          ),
        )
        .toBe(true);
      await until(page, 4);
      await shot(page, `classes-${width}`);
      await open(page, "#g=rio");
      await page.reload();
      await expect(key).toContainText("IN (green)");
      await expect(key).toContainText("OUT (yellow)");
    });

    test("dropped packets have the color of the legend, and do not cover the others", async ({ page }) => {
      await openText(page, scenario("red"));
      const key = page.locator(".key li");
      const cross = await key.filter({ hasText: "dropped" }).locator("path").getAttribute("stroke");
      const packet = await key.first().locator("circle").getAttribute("fill");
      if (!cross || !packet) throw new Error("no legend");
      await page.getByRole("button", { name: "Play" }).click();
      const drops = new Set<number>();
      const others = new Set<number>();
      for (let i = 0; i < 60; i++) {
        const found = await rows(page, [cross, packet]);
        for (const y of found[cross] ?? []) drops.add(Math.round(y));
        for (const y of found[packet] ?? []) others.add(Math.round(y));
        await page.waitForTimeout(50);
      }
      await shot(page, `drops-${width}`);
      expect(drops.size).toBeGreaterThan(5);
      // The hosts have the color of their class, too, in the row of the link.
      expect(Math.max(...drops)).toBeLessThan(Math.min(...others) - 4);
    });

    test("one's own file is not a link, and plays", async ({ page }) => {
      await openText(page, flows(3), { file: "my.toml", atS: 0 });
      await expect(page.getByRole("status")).toHaveText("Opened: my.toml.");
      await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
      await until(page, 1);
      await page.goto("about:blank");
      await openText(page, flows(3));
      await expect(page.getByRole("status")).toContainText("Opened from a link");
      await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
    });

    test("all controls of the page and of the run are in sight", async ({ page }) => {
      await open(page);
      await until(page, 3);
      const controls = page.locator("header.top, .transport").locator("button, select, input");
      expect(await controls.count()).toBeGreaterThan(11);
      for (const control of await controls.all()) {
        const box = await control.boundingBox();
        const name = await control.evaluate((element) => element.outerHTML.slice(0, 80));
        expect(box?.x ?? -1, name).toBeGreaterThanOrEqual(0);
        expect((box?.x ?? 0) + (box?.width ?? 0), name).toBeLessThanOrEqual(width);
        expect((box?.y ?? 0) + (box?.height ?? 0), name).toBeLessThanOrEqual(width < 600 ? 844 : 800);
      }
      for (const part of [".top nav", ".transport", ".figures", ".key", ".choices"]) {
        const over = await page.locator(part).evaluate((element) => element.scrollWidth - element.clientWidth);
        expect(over, part).toBeLessThanOrEqual(0);
      }
      await shot(page, `reach-${width}`);
    });

    test("the bar covers no tab of the panels, in any number of rows and wherever the page is scrolled to", async ({
      page,
    }) => {
      await open(page);
      await page.getByRole("button", { name: "Compare" }).click();
      await page.getByRole("button", { name: "codel", exact: true }).click();
      await expect(page.getByText("B: codel").first()).toBeVisible();
      await until(page, 3);
      // On a phone the key figures alone stay in sight.
      const bar = page.locator(width < 600 ? ".figures" : ".bar");
      const rows = () => bar.evaluate((element) => element.getBoundingClientRect().height);
      const usual = await rows();
      // A narrow screen, larger text or longer figures make it wrap: here each part takes a row of its own.
      await bar.locator("> *").evaluateAll((parts) => {
        for (const part of parts)
          Object.assign((part as HTMLElement).style, { flex: "1 0 100%", gridColumn: "1 / -1" });
      });
      expect(await rows()).toBeGreaterThanOrEqual(usual);
      expect(await rows()).toBeGreaterThan(80);
      const first = page.getByRole("tab", { name: "Parameters" });
      const behind = await first.evaluate((tab) => scrollY + tab.getBoundingClientRect().y - 20);
      for (const down of [0, 200, 500, 1200, 5000, behind]) {
        await page.evaluate((y) => {
          (document.activeElement as HTMLElement).blur();
          scrollTo(0, y);
        }, down);
        await page.keyboard.press("1");
        await expect(first).toBeFocused();
        const over = await bar.boundingBox();
        if (!over) throw new Error("no bar");
        for (const tab of await page.getByRole("tab").all()) {
          const box = await tab.boundingBox();
          if (!box) throw new Error("no tab");
          expect(box.y, `${down}`).toBeGreaterThanOrEqual(0);
          const apart = box.x >= over.x + over.width || box.y >= over.y + over.height || box.y + box.height <= over.y;
          expect(apart, `${down}: ${JSON.stringify({ box, over })}`).toBe(true);
          // In sight, and nothing else lies on it.
          const top = await tab.evaluate((element) => {
            const { x, y, width, height } = element.getBoundingClientRect();
            return element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
          });
          expect(top, `${down}: ${JSON.stringify(box)}`).toBe(true);
        }
        await shot(page, `tabs-${width}-${Math.round(down)}`);
      }
    });

    test("the link to skip to the charts gives them the focus", async ({ page }) => {
      await open(page);
      await page.keyboard.press("Tab");
      await expect(page.getByRole("button", { name: "Skip to the charts" })).toBeFocused();
      await page.keyboard.press("Enter");
      await expect(page.locator("#charts")).toBeFocused();
      await expect(page.locator("#charts canvas").first()).toBeInViewport();
    });
  });
}

/** Whether all these colors are in the middle of the picture now, where packets are and no hosts. */
async function seenIn(page: Page, colors: readonly string[]): Promise<boolean> {
  const found = await rows(page, colors, [0.4, 0.6]);
  return colors.every((color) => (found[color]?.length ?? 0) > 0);
}
