// What the browser tests share: a server for the built page, a browser, and ways to see and to use what is on the canvas.
//
// DIST is the built page (by default ../dist), CHROMIUM the browser (by default /usr/bin/chromium). SHOTS, if set, is a folder that gets
// screenshots. PROGRAM, if set, is the native program, whose pictures are compared with the page's.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { inflateSync } from "node:zlib";
import { chromium } from "playwright-core";

export const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.resolve(process.env.DIST ?? path.join(here, "../dist"));
const types = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** WebGPU on SwiftShader. Without the Vulkan and ANGLE flags the page gets no device. */
export const SOFTWARE_GPU = [
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--use-vulkan=swiftshader",
  "--enable-features=Vulkan",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
];
/** WebGL on SwiftShader, and no WebGPU. */
export const SOFTWARE_GL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-features=WebGPU,WebGPUService"];
/** Neither. */
export const NOTHING_DRAWS = ["--disable-gpu", "--disable-3d-apis", "--disable-features=WebGPU,WebGPUService"];
const QUIET = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** The file of the built page that an address stands for. */
export function fileOf(url) {
  const name = path.normalize(decodeURIComponent(new URL(url, "http://page").pathname)).replace(/^\/studio\//, "/");
  return path.join(dist, name.endsWith("/") ? "index.html" : name);
}

/** Serves the built page under `/studio/`: a page that only works at the root of a server would not load. */
export async function serve() {
  const server = createServer(async (request, response) => {
    const file = fileOf(request.url);
    try {
      const body = await readFile(file);
      const headers = { "content-type": types[path.extname(file)] ?? "application/octet-stream", "content-length": body.length };
      response.writeHead(200, headers).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { origin, address: `${origin}/studio/`, close: () => server.close() };
}

export const launch = (flags) =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...QUIET, ...flags] });

/** A studio in a page of its own. */
export class Studio {
  /** Opens the page with a query; `before` may prepare it. */
  static async open(browser, site, query = "", { before, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
    const studio = new Studio();
    studio.page = await context.newPage();
    studio.site = site;
    studio.faults = [];
    studio.page.on("console", (message) => message.type() === "error" && studio.faults.push(message.text()));
    studio.page.on("pageerror", (error) => studio.faults.push(String(error)));
    studio.page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (origin !== site.origin && protocol !== "blob:") studio.faults.push(`request to ${request.url()}`);
    });
    await before?.(studio.page);
    await studio.page.goto(site.address + query);
    return studio;
  }

  /** Ends the test's page: nothing went wrong in it that a person would not see. */
  async close() {
    const { faults } = this;
    await this.page.context().close();
    assert.deepEqual(faults, []);
  }

  /** What the studio says of itself. */
  facts() {
    return this.page.evaluate(() => ({ ...document.getElementById("studio").dataset }));
  }

  /** Waits until the facts are as they should be, and returns them. */
  async until(what, isSo, seconds = 120) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const facts = await this.facts();
      if (isSo(facts)) return facts;
      assert.ok(Date.now() < end, `waited in vain until ${what}: ${JSON.stringify(facts)}`);
      await this.page.waitForTimeout(50);
    }
  }

  /** Waits until the chain on the first panel is whole. */
  finished() {
    return this.until("the chain is done", ({ progress = "0/1" }) => {
      const [made, all] = progress.split("/").map(Number);
      return made === all && all > 0;
    });
  }

  /** Everything on the canvas. */
  async widgets() {
    const text = await this.page.evaluate(() => window.wasmBindings.widgets());
    return text.split("\n").filter(Boolean).map((line) => {
      const [role, label, value, use, ...box] = line.split("\t");
      const [x, y, width, height] = box.map(Number);
      return { role, label, value, isEnabled: use === "enabled", x, y, width, height };
    });
  }

  /** Something on the canvas, by its label and, if need be, its role; waited for. */
  async find(label, role) {
    const end = Date.now() + 30_000;
    for (;;) {
      const widgets = await this.widgets();
      const isIt = (widget) => (typeof label === "string" ? widget.label === label : label.test(widget.label));
      const found = widgets.find((widget) => isIt(widget) && (!role || widget.role === role) && widget.width > 0);
      if (found) return found;
      assert.ok(Date.now() < end, `there is no ${label}: ${JSON.stringify(widgets.map((widget) => `${widget.role} ${widget.label}`))}`);
      await this.page.waitForTimeout(50);
    }
  }

  async click(label, role) {
    const { x, y, width, height } = await this.find(label, role);
    await this.page.mouse.click(x + width / 2, y + height / 2);
  }

  /** Clicks what makes the browser save a file, and returns the file. */
  async download(label) {
    const begun = this.page.waitForEvent("download");
    await this.click(label);
    return readFile(await (await begun).path());
  }

  /** The pictures that the panel shows, as it exports them. */
  async exported() {
    await this.click("Export");
    return decodePng(await this.download("Pictures as PNG"));
  }

  async shoot(name) {
    if (!process.env.SHOTS) return;
    mkdirSync(process.env.SHOTS, { recursive: true });
    await this.page.screenshot({ path: path.join(process.env.SHOTS, `${name}.png`) });
  }
}

/** How many pixels of a screenshot have each of the colours of the shapes world (the darker background apart). */
export async function palette(page) {
  const { pixels, width, height, channels } = decodePng(await page.screenshot());
  const counts = { "220,50,47": 0, "44,160,70": 0, "38,110,220": 0, "240,190,30": 0, "150,80,190": 0, "250,130,40": 0 };
  for (let i = 0; i < width * height * channels; i += channels) {
    const colour = `${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`;
    if (colour in counts) counts[colour] += 1;
  }
  return counts;
}

/** The pictures are there: of the palette's six colours most cover more than one enlarged pixel. */
export async function assertPictures(page) {
  const counts = await palette(page);
  const seen = Object.values(counts).filter((count) => count > 40).length;
  assert.ok(seen >= 4, `the pictures show too few colours of the palette: ${JSON.stringify(counts)}`);
}

/** The pixels of a PNG file of eight bits, without interlacing; everything about the file is checked that these pixels depend on. */
export function decodePng(bytes) {
  assert.deepEqual([...bytes.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10], "the signature of a PNG file");
  let header;
  const data = [];
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const kind = bytes.toString("latin1", at + 4, at + 8);
    const body = bytes.subarray(at + 8, at + 8 + length);
    assert.equal(bytes.readUInt32BE(at + 8 + length), crc32(bytes.subarray(at + 4, at + 8 + length)), `the checksum of ${kind}`);
    if (kind === "IHDR") header = body;
    if (kind === "IDAT") data.push(body);
    at += 12 + length;
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = { 0: 1, 2: 3, 6: 4 }[header[9]];
  assert.ok(header[8] === 8 && channels && header[12] === 0, "eight bits, grey or colours, not interlaced");
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  assert.equal(raw.length, height * (stride + 1), "as many bytes as pixels");
  const pixels = new Uint8Array(height * stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let i = 0; i < stride; i += 1) {
      const left = i >= channels ? pixels[y * stride + i - channels] : 0;
      const up = y > 0 ? pixels[(y - 1) * stride + i] : 0;
      const corner = y > 0 && i >= channels ? pixels[(y - 1) * stride + i - channels] : 0;
      const add = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[y * stride + i] = raw[y * (stride + 1) + 1 + i] + add;
    }
  }
  return { width, height, channels, pixels };
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(guess - value));
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** The share of values that two pictures differ in. */
export function difference(a, b) {
  assert.deepEqual([a.width, a.height, a.channels], [b.width, b.height, b.channels], "pictures of one size");
  let n = 0;
  for (let i = 0; i < a.pixels.length; i += 1) n += a.pixels[i] === b.pixels[i] ? 0 : 1;
  return n / a.pixels.length;
}
