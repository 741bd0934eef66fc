// Makes the README's animated picture of the built page, in Chromium: `npm run picture [-- --out FILE.webp]`. Needs Python with Pillow.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(here, "../docs/images/explorer.webp") },
    scenario: { type: "string", default: "red" },
    frames: { type: "string", default: "40" },
    python: { type: "string", default: join(here, "../.venv/bin/python") },
  },
});
const PORT = 8532;
/** Wide enough for panels beside the charts, narrow enough for one column of charts; pictures are then made 800 pixels wide. */
const SIZE = { width: 1200, height: 840 };
const GAP_MS = 120;
const MOST_BYTES = 1.5e6;

const ENCODE = `
import sys
from pathlib import Path
from PIL import Image
out, gap, *paths = sys.argv[1:]
frames = [Image.open(path).convert("RGB").resize((800, 560), Image.Resampling.LANCZOS) for path in paths]
frames[0].save(out, save_all=True, append_images=frames[1:], duration=int(gap), loop=0, quality=70, method=4)
`;

const server = spawn(process.execPath, [join(here, "tests/browser/server.mjs"), String(PORT)], { stdio: "inherit" });
const folder = mkdtempSync(join(tmpdir(), "perhop-picture-"));
try {
  const executablePath = process.env.PERHOP_CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: SIZE, colorScheme: "light" });
  const address = `http://127.0.0.1:${PORT}/index.html#g=${values.scenario}`;
  for (let tries = 0; ; tries++) {
    try {
      await page.goto(address);
      break;
    } catch (error) {
      if (tries === 50) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  await page.locator(".chart canvas").first().waitFor();
  const paths = [];
  // The run is paused for each picture and sought to its time: the pictures are the same on any machine.
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel("Show").selectOption("20");
  const count = Number(values.frames);
  // Halfway the thresholds move up, and the queue follows.
  const moves = { [count / 2]: ["max", "90"], [count / 2 + 2]: ["min", "50"] };
  for (let i = 0; i < count; i++) {
    const move = moves[i] ?? null;
    if (move) {
      await page.locator(`.field:has([data-path$="thresholds.${move[0]}"]) .exact`).first().fill(move[1]);
      await page.keyboard.press("Enter");
      await page.waitForTimeout(300);
    }
    await page.evaluate(
      async (atS) => {
        const { store } = globalThis.perhopExplorer;
        await store.seek(atS);
        store.message.value = null;
        store.drawn.value++;
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
      },
      1 + 0.5 * i,
    );
    const path = join(folder, `${String(i).padStart(3, "0")}.png`);
    await page.screenshot({ path });
    paths.push(path);
  }
  await browser.close();
  const out = resolve(values.out);
  mkdirSync(dirname(out), { recursive: true });
  const made = spawnSync(values.python, ["-c", ENCODE, out, String(GAP_MS), ...paths], { stdio: "inherit" });
  if (made.status !== 0) throw new Error(`${values.python} with Pillow is needed to put the pictures together`);
  const { size } = statSync(out);
  console.log(`${out}: ${count} pictures, ${(size / 1e6).toFixed(2)} MB`);
  if (size > MOST_BYTES) throw new Error(`larger than ${MOST_BYTES / 1e6} MB: fewer --frames make it smaller`);
} finally {
  rmSync(folder, { recursive: true, force: true });
  server.kill();
}
