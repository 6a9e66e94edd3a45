// The studio in the browser, used as a person uses it, on the processor.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { SOFTWARE_GL, Studio, difference, here, launch, serve } from "./browser.js";

let site, browser;
before(async () => {
  site = await serve();
  browser = await launch(SOFTWARE_GL);
});
after(async () => {
  await browser?.close();
  site?.close();
});

const models = path.join(here, "../assets/models");
const search = (studio) => studio.page.evaluate(() => location.search);

/** Waits until the address has a value. */
async function untilAddress(studio, pattern) {
  await studio.until(`the address has ${pattern}`, () => true);
  for (let i = 0; i < 100; i += 1) {
    if (pattern.test(await search(studio))) return;
    await studio.page.waitForTimeout(100);
  }
  assert.match(await search(studio), pattern);
}

/** Begins to watch for tasks that hold the page up. */
const watchTasks = (page) =>
  page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: "longtask", buffered: false });
  });

/** The longest task since the last call; tasks below 50 ms are not counted, and give 0. */
const longestTask = (page) =>
  page.evaluate(() => {
    const { longest } = window;
    window.longest = 0;
    return longest;
  });

test("play, td, strategy and histogram", { timeout: 180_000 }, async (t) => {
  const studio = await Studio.open(browser, site, "?panel=chain&model=shapes-uint8&seed=1&samples=16&steps=12", { before: watchTasks });
  await studio.until("the studio draws", ({ panel }) => panel);
  await longestTask(studio.page);
  await studio.finished();
  t.diagnostic(`longest task while sampling 16 pictures: ${await longestTask(studio.page)} ms`);
  await studio.until("it has played", ({ shown }) => shown === "12");
  await studio.click("Rewind");
  await studio.until("it is at its beginning", ({ shown }) => shown === "1");
  await studio.click("Play");
  await studio.until("it has played again", ({ shown }) => shown === "12");

  const { x, y, width, height } = await studio.find("time difference td", "Slider");
  await studio.page.mouse.move(x + 4, y + height / 2);
  await studio.page.mouse.down();
  await studio.page.mouse.move(x + width / 4, y + height / 2, { steps: 8 });
  await studio.page.mouse.up();
  await untilAddress(studio, /td=[1-9]/);
  await studio.finished();

  await studio.click(/^self-conditioning/, "ComboBox");
  await studio.click("self-guidance");
  await untilAddress(studio, /strategy=guide=3/);
  await studio.finished();

  await studio.click("Bits");
  await studio.until("the histogram's chain is done", ({ panel, jobs }) => panel === "bits" && jobs === "0");
  await studio.page.waitForTimeout(500);
  await studio.shoot("histogram");
  const files = [];
  studio.page.on("download", async (file) => files.push([file.suggestedFilename(), await readFile(await file.path(), "utf8")]));
  await studio.click("Export");
  await studio.click("Numbers as CSV");
  for (let i = 0; i < 100 && files.length < 2; i += 1) await studio.page.waitForTimeout(100);
  const [, csv] = files.find(([name]) => name === "bits-histograms.csv");
  const [, ...rows] = csv.trim().split("\n").map((line) => line.split(","));
  assert.ok(rows.length > 2, "a row for each step");
  for (const [step, of, , ...shares] of rows) {
    const sum = shares.map(Number).reduce((a, b) => a + b);
    assert.ok(sum > 0.9 && sum < 1.001, `the shares of ${of} at step ${step} are ${sum} together`);
  }
  await studio.close();
});

test("a picture is exported, and its address brings it back", { timeout: 180_000 }, async () => {
  const query = "?panel=chain&model=shapes-uint8&seed=7&samples=4&steps=8&td=1&sampler=ddpm&strategy=previous";
  const studio = await Studio.open(browser, site, query, { permissions: ["clipboard-read", "clipboard-write"] });
  const done = async (studio) => {
    await studio.finished();
    await studio.until("it has played", ({ shown }) => shown === "8");
    return studio.exported();
  };
  const first = await done(studio);
  assert.ok(new Set(first.pixels).size > 4, "the picture is not blank");
  await studio.click("New noise");
  await untilAddress(studio, /seed=8/);
  const second = await done(studio);
  assert.ok(difference(first, second) > 0.05, "another seed gives another picture");

  await studio.page.reload();
  assert.equal(difference(await done(studio), second), 0);

  await studio.click("Export");
  await studio.click("Copy link");
  const link = await studio.page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${site.address}?panel=chain&model=shapes-uint8&seed=8`), link);
  await studio.close();
  const other = await Studio.open(browser, site, link.slice(site.address.length));
  assert.equal(difference(await done(other), second), 0);
  await other.close();
});

test("training in the page lowers the loss", { timeout: 240_000 }, async (t) => {
  const before = async (page) => {
    await watchTasks(page);
    // Settings as the studio keeps them.
    const train = { network: "Tiny", batch_size: 32, n_steps: 20, learning_rate: 0.003, sheet_every: 1000 };
    const kept = JSON.stringify({ train });
    await page.addInitScript((kept) => localStorage.setItem("bit-diffusion-studio", kept), kept);
  };
  const studio = await Studio.open(browser, site, "?panel=train", { before });
  await studio.until("the studio draws", ({ panel }) => panel === "train");
  await studio.click("Start training");
  const { losses } = await studio.until("ten steps are made", ({ losses = "" }) => losses.split(" ").length >= 10);
  t.diagnostic(`longest task while training with batches of 32: ${await longestTask(studio.page)} ms`);
  const numbers = losses.split(" ").map(Number);
  const mean = (some) => some.reduce((a, b) => a + b) / some.length;
  assert.ok(mean(numbers.slice(-3)) < 0.9 * mean(numbers.slice(0, 3)), `the loss falls: ${losses}`);
  await studio.shoot("training");
  await studio.close();
});

test("files are opened by a button, and hostile ones give errors only", { timeout: 120_000 }, async () => {
  const studio = await Studio.open(browser, site, "?panel=chain&samples=2&steps=3");
  await studio.finished();
  const open = async (files) => {
    const chooser = studio.page.waitForEvent("filechooser");
    await studio.click("Open…");
    await (await chooser).setFiles(files);
  };
  const model = await readFile(path.join(models, "shapes-gray.safetensors"));
  const file = (name, buffer) => ({ name, mimeType: "application/octet-stream", buffer });
  await open([file("mine.safetensors", model)]);
  await studio.until("the file is in use", ({ model, progress }) => model === "mine.safetensors" && progress === "3/3");
  const hostile = Buffer.from(model);
  hostile.writeBigUInt64LE(2n ** 60n, 0);
  for (const [name, bytes] of [
    ["huge.safetensors", hostile],
    ["short.safetensors", model.subarray(0, 1000)],
    ["empty.png", Buffer.alloc(0)],
    ["odd.png", Buffer.from("\x89PNG\r\n\x1a\n and nothing more", "latin1")],
  ]) {
    const { errors: before } = await studio.facts();
    await open([file(name, bytes)]);
    await studio.until(`${name} is refused`, ({ errors }) => errors !== before);
  }
  await studio.close();
});

test("captions with more and more steps, and of a picture that is dropped on the page", { timeout: 180_000 }, async (t) => {
  const studio = await Studio.open(browser, site, "?panel=captions&td=2", { before: watchTasks });
  await studio.until("the studio draws", ({ panel }) => panel === "captions");
  await longestTask(studio.page);
  const isComplete = ({ captions = "0/1", jobs }) => captions.split("/")[0] === captions.split("/")[1] && jobs === "0";
  await studio.until("all rows are complete", isComplete);
  t.diagnostic(`longest task while captioning 16 pictures: ${await longestTask(studio.page)} ms`);
  const sentence = /: a .*(square|disc|triangle|cross).*, true$/;
  await studio.find(sentence);
  await studio.shoot("captions");

  const picture = [...(await readFile(path.join(here, "../ui/tests/fixtures/red.png")))];
  const transfer = await studio.page.evaluateHandle((bytes) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], "red.png", { type: "image/png" }));
    return transfer;
  }, picture);
  await studio.page.dispatchEvent("#studio", "drop", { dataTransfer: transfer });
  await studio.find(/^Your picture red.png/);
  const { errors } = await studio.until("its captions are complete", isComplete);
  assert.equal(errors, "");
  await studio.shoot("captions-own");
  await studio.close();
});

test("captions of photographs, by a network that is fetched for them", { timeout: 180_000 }, async (t) => {
  const studio = await Studio.open(browser, site, "?panel=captions&captioner=coco-small&picture=2&td=5", { before: watchTasks });
  await studio.until("the studio draws", ({ panel }) => panel === "captions");
  await longestTask(studio.page);
  const { errors } = await studio.until("all rows are complete", ({ captions, jobs }) => captions === "6/6" && jobs === "0");
  assert.equal(errors, "");
  t.diagnostic(`longest task while captioning 6 photographs: ${await longestTask(studio.page)} ms`);
  await studio.find(/^The photograph coffee.jpg/);
  await studio.find(/^10 steps: a /);
  await studio.shoot("captions-photographs");
  await studio.close();
});

test("a finger plays and scrubs", { timeout: 180_000 }, async () => {
  const tablet = { viewport: { width: 820, height: 1180 }, hasTouch: true, isMobile: true };
  const studio = await Studio.open(browser, site, "?panel=chain&samples=4&steps=6", tablet);
  await studio.finished();
  await studio.until("it has played", ({ shown }) => shown === "6");
  const tap = async (label) => {
    const { x, y, width, height } = await studio.find(label);
    await studio.page.touchscreen.tap(x + width / 2, y + height / 2);
  };
  await tap("Rewind");
  await studio.until("it is at its beginning", ({ shown }) => shown === "1");
  await tap("Play");
  await studio.until("it has played again", ({ shown }) => shown === "6");
  await tap("Captions");
  await studio.until("the panel is in front", ({ panel }) => panel === "captions");
  await studio.close();
});

test("every panel draws, wide and narrow", { timeout: 240_000 }, async () => {
  const sizes = { wide: { width: 1280, height: 800 }, tablet: { width: 820, height: 1180 }, phone: { width: 390, height: 844 } };
  const tabs = ["Noise to pictures", "Time difference", "Bits", "Self-conditioning", "One bit", "Captions", "Train"];
  const panels = ["chain", "time-difference", "bits", "self-conditioning", "one-bit", "captions", "train"];
  const studio = await Studio.open(browser, site, "?panel=chain&steps=6&samples=4");
  await studio.finished();
  for (const [size, viewport] of Object.entries(sizes)) {
    await studio.page.setViewportSize(viewport);
    await studio.page.waitForTimeout(500);
    for (const [i, panel] of panels.entries()) {
      await studio.click(tabs[i]);
      const { errors } = await studio.until("the panel is done", (facts) => facts.panel === panel && facts.jobs === "0");
      assert.equal(errors, "");
      const widgets = await studio.widgets();
      const outside = widgets.filter(({ role, x }) => role === "Button" && x > viewport.width);
      assert.deepEqual(outside, [], "every button can be reached");
      await studio.page.waitForTimeout(300);
      await studio.shoot(`${panel}-${size}`);
    }
  }
  await studio.close();
});
