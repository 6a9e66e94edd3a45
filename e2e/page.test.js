// The page itself: it loads, draws, runs its first chain without a click, and says so in words where it cannot.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { brotliCompressSync, constants } from "node:zlib";
import { NOTHING_DRAWS, SOFTWARE_GL, SOFTWARE_GPU, Studio, assertPictures, fileOf, here, launch, serve } from "./browser.js";

let site, browser;
before(async () => {
  site = await serve();
  browser = await launch(SOFTWARE_GPU);
});
after(async () => {
  await browser?.close();
  site?.close();
});

test("the page loads, draws and finishes its first chain without a click", { timeout: 180_000 }, async () => {
  const studio = await Studio.open(browser, site);
  const { device } = await studio.finished();
  // WebGPU is there, but played by software: the processor computes, and the page says why.
  assert.match(device, /^CPU: .*software/);
  assert.ok(await studio.page.locator("#message").isHidden(), "the loading message is gone");
  await studio.until("it has played to the end, where the samples are clean", ({ shown }) => shown === "60");
  await assertPictures(studio.page);
  await studio.shoot("page");
  await studio.close();
});

test("what is loaded before the first sample is small", { timeout: 180_000 }, async (t) => {
  const addresses = [];
  const before = (page) => page.on("response", (response) => addresses.push(response.url()));
  const studio = await Studio.open(browser, site, "?panel=chain&steps=2&samples=1", { before });
  await studio.finished();
  const compress = (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 } });
  const files = addresses.map(fileOf).map((file) => {
    const body = readFileSync(file);
    return [path.basename(file), body.length, compress(body).length];
  });
  const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
  const sum = (column) => files.reduce((total, file) => total + file[column], 0);
  for (const [name, plain, packed] of files.filter(([, plain]) => plain > 50_000)) {
    t.diagnostic(`page: ${name} is ${megabytes(plain)} MB, ${megabytes(packed)} MB as brotli`);
  }
  t.diagnostic(`page: ${megabytes(sum(1))} MB before the first sample, ${megabytes(sum(2))} MB as brotli`);
  assert.ok(files.some(([name]) => name.endsWith(".wasm")) && files.some(([name]) => name.endsWith(".safetensors")), `${files}`);
  assert.ok(sum(2) < 8e6, `${files}`);
  await studio.close();
});

test("a seed gives the same noise in the browser as in the reference", { timeout: 180_000 }, async () => {
  const golden = JSON.parse(readFileSync(path.join(here, "../core/tests/golden/golden.json"), "utf8"));
  const studio = await Studio.open(browser, site);
  await studio.until("the studio draws", ({ panel }) => panel);
  const noise = await studio.page.evaluate((n) => [...window.wasmBindings.normalNoise(8n, n)], golden.noise.plain.length);
  assert.deepEqual(noise, golden.noise.plain.map(Math.fround));
  await studio.close();
});

test("the loading bar shows the bytes of the program", { timeout: 180_000 }, async () => {
  const texts = [];
  const before = async (page) => {
    await page.exposeFunction("seen", (text) => texts.push(text));
    await page.addInitScript(() => {
      const look = () => {
        const text = document.getElementById("loading");
        if (text) new MutationObserver(() => window.seen(`${text.textContent} ${document.getElementById("bytes").value}`)).observe(text, { childList: true });
      };
      addEventListener("DOMContentLoaded", look);
    });
  };
  const studio = await Studio.open(browser, site, "", { before });
  await studio.until("the studio draws", ({ panel }) => panel);
  const shares = texts.map((text) => /: ([\d.]+) of ([\d.]+) MB/.exec(text)).filter(Boolean);
  assert.ok(shares.length > 1, `too few messages: ${texts}`);
  const [, received, total] = shares.at(-1).map(Number);
  assert.ok(total > 1 && received === total, `${shares.at(-1)}`);
  await studio.close();
});

test("a narrow page in the dark draws too", { timeout: 180_000 }, async () => {
  const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true };
  const studio = await Studio.open(browser, site, "?panel=chain&steps=20", phone);
  await studio.finished();
  await studio.until("it has played", ({ shown }) => shown === "20");
  await assertPictures(studio.page);
  await studio.shoot("phone");
  await studio.close();
});

test("nonsense in the address is harmless", { timeout: 180_000 }, async () => {
  const studio = await Studio.open(browser, site, "?device=quantum&panel=%zz&model=<script>&seed=-1&steps=1e99&td=NaN&sampler=&strategy=%");
  const { progress, panel, errors } = await studio.finished();
  assert.deepEqual([progress, panel, errors], ["60/60", "chain", ""]);
  await studio.close();
});

test("a model that cannot be fetched is said to be missing, and another one works", { timeout: 180_000 }, async () => {
  const before = (page) => page.route("**/models/shapes-gray.*", (route) => route.fulfill({ status: 404 }));
  const studio = await Studio.open(browser, site, "?panel=chain&model=shapes-gray&steps=3&samples=2", { before });
  const { errors } = await studio.until("the studio says so", ({ errors }) => errors);
  assert.match(errors, /shapes-gray cannot be fetched: the server says 404/);
  await studio.click(/model/, "ComboBox");
  await studio.click("shapes-rand");
  await studio.until("the other model has run", ({ model, progress }) => model === "shapes-rand" && progress === "3/3");
  // The browser's own word for it.
  studio.faults = studio.faults.filter((fault) => !fault.includes("404"));
  await studio.close();
});

test("without WebGPU it draws with WebGL", { timeout: 180_000 }, async () => {
  const other = await launch(SOFTWARE_GL);
  const studio = await Studio.open(other, site, "?panel=chain&steps=10");
  const { device, drawing } = await studio.finished();
  assert.match(device, /^CPU: .*WebGPU/);
  assert.equal(drawing, "Gl");
  await studio.until("it has played", ({ shown }) => shown === "10");
  await assertPictures(studio.page);
  await studio.close();
  await other.close();
});

test("where nothing draws there is a page to read", { timeout: 60_000 }, async () => {
  const other = await launch(NOTHING_DRAWS);
  const studio = await Studio.open(other, site);
  await studio.page.locator("#message h1").waitFor();
  const text = await studio.page.locator("#message").innerText();
  assert.match(text, /cannot start here/);
  assert.match(text, /neither with WebGPU nor with WebGL 2/);
  assert.match(text, /Chrome, Edge, Firefox/);
  assert.ok(await studio.page.locator("canvas").isHidden());
  await studio.shoot("nothing-draws");
  await studio.close();
  await other.close();
});
