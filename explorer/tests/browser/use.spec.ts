// What one does with the page: load, move a slider, compare, ask why, write TOML, share, export; by mouse, by keyboard, on a phone.

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { changes, expect, open, type Probe, seek, shot, still, test, time, until } from "./page.ts";

test("the first scenario of the gallery opens and plays", async ({ page }) => {
  await open(page, "");
  await until(page, 5);
  await expect(page.getByRole("heading", { level: 2 })).not.toBeEmpty();
  await expect(page.locator(".figures")).toContainText("link utilization");
  await shot(page, "load");
});

test("a slider acts from now on, and its value stands in the text", async ({ page }) => {
  await open(page);
  await until(page, 8);
  const before = await time(page);
  const slider = page.getByRole("slider", { name: /max_p/ }).first();
  await slider.focus();
  for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("status")).toContainText("from");
  expect(await time(page)).toBeCloseTo(before, 6);
  const value = await page.locator(".field input.exact").first().inputValue();
  expect(Number(value)).toBeGreaterThan(0.15);
  await page.getByRole("tab", { name: "Scenario" }).click();
  await expect(page.locator("#toml")).toHaveValue(new RegExp(value.replace(".", "\\.")));
  await shot(page, "slider");
});

test("the legend shows the values under the pointer", async ({ page }) => {
  await open(page);
  await until(page, 8);
  const chart = page.locator(".chart").first();
  const latest = await chart.locator(".legend b").first().textContent();
  await expect(chart.locator(".legend .pointed")).toHaveCount(0);
  // At time zero the queue is empty.
  await chart.locator(".u-over").hover({ position: { x: 0, y: 40 } });
  await expect(chart.locator(".legend .pointed")).toContainText(/^at 0/);
  await expect(chart.locator(".legend b").first()).toHaveText("0 packets");
  await page.mouse.move(0, 0);
  await expect(chart.locator(".legend b").first()).toHaveText(latest ?? "");
});

test("a second mechanism runs beside the first", async ({ page }) => {
  await open(page);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("button", { name: "codel", exact: true }).click();
  await expect(page.getByText("B: codel").first()).toBeVisible();
  await until(page, 15);
  await expect(page.locator("canvas[role=img]")).toHaveCount(2);
  await expect(page.locator(".figures .second").first()).toBeVisible();
  await shot(page, "compare", true);
});

test("why a packet was dropped", async ({ page }) => {
  await open(page);
  await until(page, 6);
  await page.getByRole("button", { name: "Next drop" }).click();
  await expect(page.locator(".explained .sentence")).toContainText(/dropped|marked/);
  await expect(page.locator(".rule .decided").first()).toBeVisible();
  await expect(page.locator(".explained table")).toContainText("random number");
  await shot(page, "why");
});

test("why FQ-CoDel and DualPI2 dropped or marked: the flow's queue and CoDel's state, the coupled probabilities", async ({
  page,
}) => {
  const why = async (gallery: string, at: number) => {
    await page.goto("about:blank");
    await open(page, `#g=${gallery}`);
    await until(page, at);
    await page.getByRole("button", { name: "Next drop" }).click();
    await expect(page.locator(".explained .sentence")).toContainText(/dropped|marked/);
    await expect(page.locator(".rule .decided").first()).toBeVisible();
    await shot(page, `why-${gallery}`);
    return page.locator(".explained table");
  };
  const fq = await why("calls-beside-downloads", 8);
  await expect(page.locator(".explained .sentence")).toContainText("its flow's queue");
  for (const fact of ["queue of the flow", "count", "next drop due at", "target", "packets left in all queues"])
    await expect(fq).toContainText(fact);
  await expect(page.locator(".rule")).toContainText("the queue of its flow");
  await expect(page.locator(".scale").first()).toBeVisible();
  const dual = await why("l4s-dualpi2", 8);
  await expect(page.locator(".explained .sentence")).toContainText("queue");
  for (const fact of ["p'", "p_CL", "p_C", "counter before", "probability", "delay at the last update"])
    await expect(dual).toContainText(fact);
  await expect(dual).toContainText(/queueL4S|queueclassic/);
});

test("a parameter that the text leaves out: its default, set, and back", async ({ page }) => {
  await open(page, "#g=pie");
  await until(page, 3);
  const text = () => page.evaluate(() => (globalThis as unknown as Probe).perhopExplorer.store.drafts.value[0]);
  const before = await text();
  await page.locator("summary", { hasText: "links.downlink" }).click();
  const more = page.locator("details.more").filter({ hasText: "max-burst" });
  const field = more.locator(".field").filter({ hasText: "max-burst" });
  await expect(field).toBeHidden();
  await more.locator("summary").click();
  await expect(field).toContainText("default 150 ms");
  expect(await text()).toBe(before);
  await field.scrollIntoViewIfNeeded();
  await shot(page, "more-parameters");
  const slider = field.getByRole("slider");
  await slider.focus();
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("status")).toContainText("max-burst");
  await expect(slider).toBeFocused();
  await still(page);
  const value = await field.locator("input.exact").inputValue();
  expect(Number(value)).toBeGreaterThan(150);
  await expect.poll(text).toContain(`max-burst = "${value}ms"`);
  await expect(more.locator("summary")).toContainText("1 set");
  await shot(page, "more-parameters-set");
  await field.getByRole("button", { name: /back to the default, 150 ms/ }).click();
  await expect.poll(text).toBe(before);
  await expect(page.getByRole("status")).toContainText("as by default");
  await expect(field.locator("input.exact")).toHaveValue("150");
  await expect(more.locator("summary")).toContainText("all by default");
});

test("broken TOML gives the program's message at its line, and the run goes on", async ({ page }) => {
  await open(page);
  await page.getByRole("tab", { name: "Scenario" }).click();
  const text = await page.locator("#toml").inputValue();
  await page.locator("#toml").fill(text.replace(/"10Mbps"/, '"10Mbs"'));
  await expect(page.locator("#toml-problem")).toContainText("`10Mbs`".replaceAll("`", ""));
  const line = text.split("\n").findIndex((of) => of.includes('"10Mbps"')) + 1;
  await expect(page.locator("#toml-problem")).toContainText(`Line ${line}`);
  await expect(page.locator(".gutter .bad")).toHaveText(String(line));
  await shot(page, "broken-toml");
  await page.locator("#toml").fill(text.replace(/"10Mbps"/, '"5Mbps"'));
  await expect(page.locator("#toml-problem")).toHaveCount(0);
  await page.locator("#toml").press("Control+Enter");
  await page.getByRole("tab", { name: "Parameters" }).click();
  await expect(page.locator('input[data-path$=".rate"]').first()).toHaveAttribute("aria-valuetext", "5 Mbps");
});

test("a link carries scenario, changes, seed and time", async ({ page, context }) => {
  await open(page);
  await page.getByLabel("Seed", { exact: true }).fill("7");
  await page.getByLabel("Seed", { exact: true }).press("Enter");
  await until(page, 4);
  await page.locator(".field input.exact").first().fill("0.3");
  await page.locator(".field input.exact").first().press("Enter");
  await expect(page.getByRole("status")).toContainText("0.3");
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Next packet" }).click();
  await still(page);
  const now = await time(page);
  await page.getByRole("button", { name: "Share" }).click();
  const link = await page.locator("#link").inputValue();
  const figures = (await page.locator(".figures").textContent()) ?? "";
  const other = await context.newPage();
  await other.goto(link);
  await expect.poll(() => time(other)).toBeCloseTo(now, 9);
  await expect(other.getByLabel("Seed", { exact: true })).toHaveValue("7");
  await expect(other.locator(".field input.exact").first()).toHaveValue("0.3");
  await expect(other.locator(".figures")).toHaveText(figures);
});

test("a change while it plays: it goes on, going back replays it, and link and file say so", async ({
  page,
  context,
}) => {
  await open(page);
  await expect.poll(() => time(page)).toBeGreaterThan(3);
  const slider = page.getByRole("slider", { name: /max_p/ }).first();
  await slider.focus();
  for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowRight");
  const changed = await time(page);
  await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
  const exact = page.locator(".field input.exact").first();
  await expect.poll(() => exact.inputValue().then(Number)).toBeGreaterThan(0.12);
  await until(page, changed + 4);
  const value = await exact.inputValue();
  const now = await time(page);
  const made = await changes(page);
  expect(made.length).toBeGreaterThan(0);
  expect(made.at(-1)).toMatchObject({ which: 0, value });
  const [first, last] = [made[0]?.atS ?? 0, made.at(-1)?.atS ?? 0];
  expect(first).toBeGreaterThan(3);
  expect(last).toBeLessThan(now);
  const figures = async (of: Page) => (await of.locator(".figures").textContent()) ?? "";
  const before = await figures(page);

  // The link: the same run, with the changes at their times.
  await page.getByRole("button", { name: "Share" }).click();
  const link = await page.locator("#link").inputValue();
  await shot(page, "share");
  await page.keyboard.press("Escape");
  const other = await context.newPage();
  await other.goto(link);
  await expect(other.getByRole("status")).toContainText("Opened from a link");
  expect(await time(other)).toBeCloseTo(now, 9);
  expect(await figures(other)).toBe(before);
  expect(await changes(other)).toEqual(made);
  await expect(other.locator(".field input.exact").first()).toHaveValue(value);
  await other.close();

  // The file: the values of now, and when they changed.
  await page.getByRole("button", { name: "Export" }).click();
  await expect(page.getByRole("dialog")).toContainText("The link (Share) replays the changes");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "TOML of the scenario" }).click();
  const text = readFileSync(await (await download).path(), "utf8");
  expect(text).toContain(`/${value}"`);
  expect(text).toContain(`# at ${last.toFixed(3)} s: links.bottleneck.queue.thresholds.max_p = ${value}\n`);
  await page.keyboard.press("Escape");

  // Back to after the last change, and on: the same run.
  await seek(page, last + 1);
  await expect(page.getByRole("status")).toContainText(`Back at ${(last + 1).toFixed(2)} s`);
  expect(await changes(page)).toEqual(made);
  await seek(page, now);
  await still(page);
  expect(await figures(page)).toBe(before);

  // Back to before the first: it is undone, and the slider says so.
  const clock = page.getByRole("slider", { name: "Time", exact: true });
  await clock.focus();
  await page.keyboard.press("Home");
  await expect(page.getByRole("status")).toContainText("undone");
  await expect.poll(() => time(page)).toBe(0);
  expect(await changes(page)).toEqual([]);
  await expect(exact).toHaveValue("0.1");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => time(page)).toBeCloseTo(0.6, 6);
  await shot(page, "back-in-time");
});

test("a second run keeps out of the first one's changes", async ({ page, context }) => {
  await open(page);
  await until(page, 3);
  const exact = page.locator(".field input.exact").first();
  await exact.fill("0.4");
  await exact.press("Enter");
  await expect(page.getByRole("status")).toContainText("0.4");
  const changed = await time(page);
  await seek(page, changed + 2);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("button", { name: "codel", exact: true }).click();
  await expect(page.getByText("B: codel").first()).toBeVisible();
  await seek(page, changed + 4);
  const made = await changes(page);
  expect(made.map(({ which, value }) => [which, value])).toEqual([[0, "0.4"]]);
  await page.getByRole("button", { name: "Share" }).click();
  const link = await page.locator("#link").inputValue();
  const figures = (await page.locator(".figures").textContent()) ?? "";
  const other = await context.newPage();
  await other.goto(link);
  await expect(other.getByRole("status")).toContainText("Opened from a link");
  await expect(other.locator(".figures")).toHaveText(figures);
  expect(await changes(other)).toEqual(made);
});

test("several seeds give intervals, and differences of both runs", async ({ page }) => {
  await open(page);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("button", { name: "drop-tail", exact: true }).click();
  await expect(page.getByText("B: drop-tail").first()).toBeVisible();
  await page.getByRole("tab", { name: "Several seeds" }).click();
  await page.locator(".seeds select").selectOption("3");
  await page.getByRole("button", { name: "Run them" }).click();
  await expect(page.getByText("3 of 3 runs of A, 3 of B")).toBeVisible({ timeout: 60_000 });
  await expect(page.locator("td[data-verdict]").first()).toContainText("±");
  await expect(page.getByRole("row", { name: "bottleneck.delay p99" })).toContainText(/at most 96\.81.*at most \d/);
  await shot(page, "seeds");
});

test("exports: PNG, CSV and TOML", async ({ page }) => {
  await open(page);
  await until(page, 5);
  await page.getByRole("button", { name: "Export" }).click();
  const fetched = async (name: string) => {
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name }).click();
    return readFileSync(await (await download).path());
  };
  expect((await fetched("PNG of the charts")).subarray(1, 4).toString()).toBe("PNG");
  const samples = (await fetched("CSV of the samples")).toString().trim().split("\n");
  expect(samples.length).toBeGreaterThan(20);
  expect(new Set(samples.filter((row) => !row.startsWith("#")).map((row) => row.split(",").length)).size).toBe(1);
  expect((await fetched("TOML of the scenario")).toString()).toContain("[links");
});

test("everything by keyboard", async ({ page }) => {
  await open(page);
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.keyboard.press("4");
  await expect(page.getByRole("tab", { name: "Several seeds" })).toBeFocused();
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("tab", { name: "Why dropped?" })).toBeFocused();
  // Every control is in the order of Tab, and shows that it has the focus.
  await page.keyboard.press("1");
  const seen = new Set<string>();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const element = document.activeElement;
      if (!(element instanceof HTMLElement) || element === document.body) return null;
      const style = getComputedStyle(element);
      return {
        name: `${element.tagName} ${element.id} ${element.textContent}`.slice(0, 80),
        outline: style.outlineStyle,
      };
    });
    if (!focus) continue;
    expect(focus.outline, focus.name).not.toBe("none");
    seen.add(focus.name);
  }
  const all = [...seen].join("\n");
  for (const wanted of [
    "Scenarios",
    "Compare",
    "Share",
    "Export",
    "Help",
    "Play",
    "Restart",
    "Next packet",
    "Next drop",
  ]) {
    expect(all).toContain(wanted);
  }
  await shot(page, "keyboard");
});

for (const width of [1280, 900, 390]) {
  test(`the bar of controls covers no element that has the focus, ${width} pixels wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 720 });
    await open(page);
    await until(page, 2);
    await page.keyboard.press("Space");
    await page.keyboard.press("1");
    for (let i = 0; i < 25; i++) await page.keyboard.press("Tab");
    const covered: string[] = [];
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Shift+Tab");
      const under = await page.evaluate(() => {
        const element = document.activeElement;
        if (!(element instanceof HTMLElement) || element === document.body) return null;
        const { top, height } = element.getBoundingClientRect();
        for (const part of document.querySelectorAll(".bar, .figures, [role=tablist]")) {
          if (getComputedStyle(part).position !== "sticky" || part.contains(element)) continue;
          const above = part.getBoundingClientRect();
          const beside = element.getBoundingClientRect();
          if (above.right <= beside.left || above.left >= beside.right) continue;
          if (top < above.bottom && top + height > above.top) {
            return `${element.tagName} ${element.getAttribute("aria-label") ?? element.textContent}`.slice(0, 60);
          }
        }
        return null;
      });
      if (under) covered.push(under);
    }
    expect(covered).toEqual([]);
  });
}

test("going back without a change says nothing of changes", async ({ page }) => {
  await open(page);
  await until(page, 4);
  await seek(page, 1);
  await expect(page.getByRole("status")).toHaveText("Back at 1.00 s.");
});

/** Presses Tab until the element with this name has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const seen: string[] = [];
  for (let i = 0; i < 150; i++) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const element = document.activeElement;
      const isField = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
      const label = isField ? element.labels?.[0]?.textContent : null;
      return (element?.getAttribute("aria-label") ?? label ?? element?.textContent ?? "").trim();
    });
    if (name.test(focus)) return;
    seen.push(focus.slice(0, 30));
  }
  throw new Error(`${name} is not in the order of Tab: ${seen.join(", ")}`);
}

for (const width of [1280, 390]) {
  test(`a whole visit by keyboard alone, ${width} pixels wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 844 });
    await open(page);
    // Another scenario.
    await page.keyboard.press("g");
    await expect(page.getByRole("dialog")).toBeVisible();
    await tabTo(page, /^CoDel/);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    await expect(page.getByRole("heading", { level: 2 })).toContainText("CoDel");
    await expect.poll(() => time(page)).toBeGreaterThan(2);
    await page.keyboard.press("Space");
    await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
    // The values of a chart at any time.
    await tabTo(page, /^Queue of .*, values$/);
    const chart = page.locator(".chart").first();
    await page.keyboard.press("Home");
    await expect(chart.locator(".pointed")).toHaveText("at 0 s");
    await page.keyboard.press("ArrowRight");
    await expect(chart.locator(".pointed")).not.toHaveText("at 0 s");
    const spoken = await chart.getByRole("slider").getAttribute("aria-valuetext");
    expect(spoken).toMatch(/^at [\d.]+ s: .* [\d.]+ (ms|packets)/);
    await shot(page, `keyboard-chart-${width}`);
    // A parameter.
    await tabTo(page, /^rate of links\.uplink, slider$/);
    await expect(chart.locator(".pointed")).toHaveCount(0);
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowLeft");
    await expect(page.getByRole("status")).toContainText("links.uplink.rate");
    await expect(page.getByRole("slider", { name: "rate of links.uplink" })).toBeFocused();
    // Why a packet was dropped.
    await page.keyboard.press("d");
    await expect(page.locator(".explained .sentence")).toContainText("dropped");
    // A second mechanism, and intervals of both.
    await page.keyboard.press("c");
    await expect(page.getByRole("dialog")).toBeVisible();
    await tabTo(page, /^pie$/);
    await page.keyboard.press("Enter");
    await expect(page.getByText("B: pie").first()).toBeVisible();
    await page.keyboard.press("4");
    await tabTo(page, /^Run them$/);
    await page.keyboard.press("Enter");
    await expect(page.getByText("10 of 10 runs of A, 10 of B")).toBeVisible({ timeout: 120_000 });
    // The text.
    await page.keyboard.press("2");
    await tabTo(page, /^Scenario \(TOML\)/);
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("# mine\n");
    await page.keyboard.press("Control+Enter");
    await expect(page.getByRole("status")).toContainText("from its beginning");
    await page.keyboard.press("Tab");
    // A link to all this; the focus returns to where it was.
    const focus = () => page.evaluate(() => document.activeElement?.outerHTML ?? "");
    const before = await focus();
    await page.keyboard.press("s");
    await expect(page.locator("#link")).not.toHaveValue("");
    await page.keyboard.press("Escape");
    await expect.poll(focus).toBe(before);
  });
}

test("a phone's width needs no sideways scrolling", async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await open(page);
  await until(page, 8);
  for (const panel of ["Parameters", "Scenario", "Why dropped?", "Several seeds"]) {
    await page.getByRole("tab", { name: panel }).click();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  }
  await page.getByRole("tab", { name: "Parameters" }).click();
  await shot(page, "phone", true);
  await page.locator("summary", { hasText: "links.bottleneck" }).click();
  await page.locator("details.more summary").first().click();
  await page.locator("details.more").first().scrollIntoViewIfNeeded();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await shot(page, "phone-more");
  await page.getByRole("button", { name: "Scenarios" }).click();
  await shot(page, "phone-gallery");
});

test("the gallery's scenarios all open and run", async ({ page }) => {
  await open(page);
  await page.getByRole("button", { name: "Scenarios" }).click();
  await shot(page, "gallery");
  const ids: string[] = await (await page.request.get("gallery/index.json"))
    .json()
    .then((all) => all.map((of: { id: string }) => of.id));
  expect(ids.length).toBeGreaterThanOrEqual(12);
  for (const id of ids) {
    await open(page, "");
    await page.goto(`index.html#g=${id}`);
    await page.reload();
    await expect(page.locator(".chart canvas").first()).toBeVisible();
    await expect.poll(() => time(page), { timeout: 60_000 }).toBeGreaterThan(3);
    await expect(page.locator(".message.bad"), id).toHaveCount(0);
    await shot(page, `gallery-${id}`);
  }
});
