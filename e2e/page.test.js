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
import { chromium } from "playwright-core";

const here = import.meta.dirname;
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

const finished = (page) =>
  page.waitForFunction(
    () => {
      const [done, total] = (document.getElementById("studio").dataset.progress ?? "0/1").split("/");
      return done === total;
    },
    null,
    { timeout: 120_000 },
  );

/** How many different colours a screenshot has, from its pixels. */
async function colours(page) {
  const png = await page.screenshot();
  return page.evaluate(async (base64) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return new Set(new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)).size;
  }, png.toString("base64"));
}

test("the page loads, draws and finishes its first chain without a click", { timeout: 180_000 }, async () => {
  const { page, faults } = await open();
  await finished(page);
  assert.equal(await page.locator("#message").count(), 0, "the loading message is gone");
  // A blank page has one colour, the controls alone a few dozen; the pictures add the palette, antialiased text the rest.
  const n = await colours(page);
  assert.ok(n > 60, `the page shows only ${n} colours`);
  if (process.env.SHOTS) {
    mkdirSync(process.env.SHOTS, { recursive: true });
    await page.waitForTimeout(4000);
    await page.screenshot({ path: path.join(process.env.SHOTS, "page.png") });
  }
  assert.deepEqual(faults, []);
});

test("a seed gives the same noise in the browser as in the reference", { timeout: 180_000 }, async () => {
  const golden = JSON.parse(readFileSync(path.join(here, "../core/tests/golden/golden.json"), "utf8"));
  const { page, faults } = await open();
  await finished(page);
  const noise = await page.evaluate((n) => [...window.wasmBindings.normalNoise(8n, n)], golden.noise.plain.length);
  noise.forEach((value, i) => assert.ok(Math.abs(value - golden.noise.plain[i]) < 1e-7, `element ${i}`));
  assert.deepEqual(faults, []);
});

test("a narrow page in the dark draws too", { timeout: 180_000 }, async () => {
  const { page, faults } = await open({ viewport: { width: 480, height: 800 }, colorScheme: "dark" });
  await finished(page);
  if (process.env.SHOTS) {
    await page.waitForTimeout(4000);
    await page.screenshot({ path: path.join(process.env.SHOTS, "narrow.png") });
  }
  assert.deepEqual(faults, []);
});
