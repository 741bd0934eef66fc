// Untrusted links, the content security policy, and accessibility.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { encodeState } from "../../src/state.ts";
import { expect, open, scenario, shot, stateOf as state, test, until } from "./page.ts";

const HTML = `<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>`;

function hostile(): string {
  const text = JSON.stringify(HTML);
  return [
    `title = ${text}`,
    `duration = "5s"`,
    `[links.${text}]`,
    `from = ${text}`,
    `to = "b"`,
    `rate = "10Mbps"`,
    `delay = "5ms"`,
    `queue = { aqm = "red", thresholds = "5/15/0.1", limit = "60p" }`,
    `[[flows]]`,
    `name = ${text}`,
    `count = 3`,
    `from = ${text}`,
    `to = "b"`,
    `transport = { tcp = "newreno" }`,
  ].join("\n");
}

test("no HTML from a link reaches the page", async ({ page }) => {
  for (const panel of ["parameters", "scenario", "why", "seeds"] as const) {
    await page.goto("about:blank");
    await page.goto(`index.html${await encodeState(state(hostile(), { panel, link: HTML, gallery: HTML }))}`);
    await expect(page.locator("h2").first()).toHaveText(HTML);
    await page.waitForTimeout(200);
    expect(await page.evaluate(() => "hacked" in globalThis)).toBe(false);
    expect(await page.locator("main img, main script").count()).toBe(0);
  }
  await shot(page, "hostile-names");
});

test("a scenario that is wrong gives its message as text", async ({ page }) => {
  await page.goto(`index.html${await encodeState(state(`${hostile()}\nrate = ${JSON.stringify(HTML)}`))}`);
  await expect(page.locator(".message.bad")).toBeVisible();
  expect(await page.locator(".message img").count()).toBe(0);
  expect(await page.evaluate(() => "hacked" in globalThis)).toBe(false);
});

test("malformed links give a message, and the page works", async ({ page }) => {
  const bomb = await encodeState(
    state("a".repeat(140_000), { compare: "b".repeat(140_000), link: "c".repeat(200_000) }),
  );
  const good = await encodeState(state(scenario("red")));
  for (const fragment of [
    "#s=",
    "#s=%3Cscript%3E",
    "#s=AAAA",
    `#s=${"A".repeat(70_000)}`,
    "#x",
    `#g=${HTML}`,
    "#g=no-such-scenario",
    "#g=../../etc",
    good.slice(0, good.length / 2),
    bomb,
    await encodeState({ ...state("x"), seed: "-1" }),
    await encodeState({ ...state("x"), atS: "1" as unknown as number }),
    await encodeState({ ...state("x"), changes: [null] as unknown as [] }),
  ]) {
    await page.goto("about:blank");
    await page.goto(`index.html${fragment}`);
    await expect(page.locator(".chart canvas").first()).toBeVisible();
    // Opening the first scenario instead does not hide the message.
    await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
    await page.waitForTimeout(200);
    await expect(page.locator(".message.bad"), fragment.slice(0, 40)).toBeVisible();
  }
  await shot(page, "malformed-link");
});

test("the content security policy stops scripts and strangers", async ({ page, errors }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await open(page);
  const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe-inline");
  expect(policy).not.toMatch(/'unsafe-eval'/);
  expect(new Set(asked.map((url) => new URL(url).host)).size, "requests go to one place").toBe(1);
  expect(errors).toEqual([]);
  const blocked = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.hacked = 1";
    document.body.append(script);
    return !("hacked" in globalThis);
  });
  expect(blocked).toBe(true);
  errors.length = 0; // The browser reports that script, as it should.
});

interface Axe {
  axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { target: string[] }[] }[] }> };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

for (const [colorScheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 390],
  ["dark", 390],
] as const) {
  test(`axe-core finds no serious violation, ${colorScheme}, ${width} pixels wide`, async ({ browser, baseURL }) => {
    // The policy of the page lets no foreign script in, axe-core included.
    const viewport = { width, height: 844 };
    const where = { colorScheme, bypassCSP: true, viewport, ...(baseURL ? { baseURL } : {}) };
    const context = await browser.newContext(where);
    const page = await context.newPage();
    await open(page);
    await until(page, 6);
    await page.evaluate(AXE);
    const found: string[] = [];
    const look = async (where: string) => {
      await expect(page.locator(".message[data-shown=true]")).toHaveCount(0, { timeout: 15_000 });
      const { violations } = await page.evaluate(() => (globalThis as unknown as Axe).axe.run());
      for (const { id, impact, nodes } of violations) {
        if (impact === "serious" || impact === "critical")
          found.push(`${where}: ${id} ${nodes.map((node) => node.target).join("; ")}`);
      }
    };
    for (const panel of ["Parameters", "Scenario", "Why dropped?", "Several seeds"]) {
      await page.getByRole("tab", { name: panel }).click();
      await look(panel);
      await shot(page, `${colorScheme}-${width}-${panel.toLowerCase().replaceAll(/\W+/g, "-")}`);
    }
    await page.getByRole("tab", { name: "Parameters" }).click();
    for (const summary of [/^links\./, /^More parameters/])
      await page.locator("summary:visible", { hasText: summary }).first().click();
    await look("more parameters");
    await shot(page, `${colorScheme}-${width}-more-parameters`);
    await page.getByRole("button", { name: "Next drop" }).click();
    await expect(page.locator(".explained")).toBeVisible();
    await look("explanation");
    await shot(page, `${colorScheme}-${width}-explanation`);
    for (const name of ["Scenarios", "Compare", "Share", "Export", "Help"]) {
      await page.getByRole("button", { name, exact: true }).first().click();
      await expect(page.getByRole("dialog")).toBeVisible();
      await look(name);
      await shot(page, `${colorScheme}-${width}-dialog-${name.toLowerCase()}`);
      await page.keyboard.press("Escape");
    }
    expect(found).toEqual([]);
    await context.close();
  });
}
