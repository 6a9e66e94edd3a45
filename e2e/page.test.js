// The built page in a real browser: it loads, draws, runs its first chain, and makes the same noise as everywhere else.
//
//   node --test           with the built page in DIST (by default ../dist)
//
// CHROMIUM names the browser (by default /usr/bin/chromium). SHOTS, if set, is a folder that gets a screenshot of each panel.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.resolve(process.env.DIST ?? path.join(here, "../dist"));
const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".svg": "image/svg+xml" };

// Software rendering: WebGPU on SwiftShader. Without the Vulkan and ANGLE flags the page gets no device.
const software = [
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--use-vulkan=swiftshader",
  "--enable-features=Vulkan",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
];
const quiet = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let server, origin, browser;

before(async () => {
  server = createServer(async (request, response) => {
    const name = path.normalize(decodeURIComponent(new URL(request.url, "http://page").pathname));
    const file = path.join(dist, name.endsWith("/") ? "index.html" : name);
    try {
      const body = await readFile(file);
      response.writeHead(200, { "content-type": types[path.extname(file)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...quiet, ...software],
  });
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** A page of its own that records what must not happen. */
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => new URL(request.url()).origin === origin || faults.push(`request to ${request.url()}`));
  await page.goto(`${origin}/`);
  return { page, faults };
}

/** Waits until the first chain, of 60 steps, is done. */
const finished = (page) =>
  page.waitForFunction(() => document.getElementById("studio").dataset.progress === "60/60", null, { timeout: 120_000 });

/** How many pixels of a screenshot have each of the colours of the shapes world (the darker background apart). */
async function palette(page) {
  const png = await page.screenshot();
  return page.evaluate(async (base64) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const counts = { "220,50,47": 0, "44,160,70": 0, "38,110,220": 0, "240,190,30": 0, "150,80,190": 0, "250,130,40": 0 };
    for (let i = 0; i < data.length; i += 4) {
      const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      if (colour in counts) counts[colour] += 1;
    }
    return counts;
  }, png.toString("base64"));
}

/** The pictures are there: of the palette's six colours most cover more than one enlarged pixel. */
async function assertPictures(page) {
  const counts = await palette(page);
  const seen = Object.values(counts).filter((count) => count > 40).length;
  assert.ok(seen >= 4, `the pictures show too few colours of the palette: ${JSON.stringify(counts)}`);
}

async function shoot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(process.env.SHOTS, name) });
}

test("the page loads, draws and finishes its first chain without a click", { timeout: 180_000 }, async () => {
  const { page, faults } = await open();
  await finished(page);
  assert.ok(await page.locator("#message").isHidden(), "the loading message is gone");
  // It plays to the end, where the samples are clean.
  await page.waitForTimeout(5000);
  await assertPictures(page);
  await shoot(page, "page.png");
  assert.deepEqual(faults, []);
});

test("a seed gives the same noise in the browser as in the reference", { timeout: 180_000 }, async () => {
  const golden = JSON.parse(readFileSync(path.join(here, "../core/tests/golden/golden.json"), "utf8"));
  const { page, faults } = await open();
  await finished(page);
  const noise = await page.evaluate((n) => [...window.wasmBindings.normalNoise(8n, n)], golden.noise.plain.length);
  assert.deepEqual(noise, golden.noise.plain.map(Math.fround));
  assert.deepEqual(faults, []);
});

test("a narrow page in the dark draws too", { timeout: 180_000 }, async () => {
  const { page, faults } = await open({ viewport: { width: 480, height: 800 }, colorScheme: "dark" });
  await finished(page);
  await page.waitForTimeout(5000);
  await assertPictures(page);
  await shoot(page, "narrow.png");
  assert.deepEqual(faults, []);
});
