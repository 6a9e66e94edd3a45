// One device that computes and draws: WebGPU on SwiftShader, forced, gives the pictures of the processor and of the native program.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { SOFTWARE_GPU, Studio, decodePng, difference, launch, serve } from "./browser.js";

let site, browser;
before(async () => {
  site = await serve();
  browser = await launch(SOFTWARE_GPU);
});
after(async () => {
  await browser?.close();
  site?.close();
});

// DDPM draws noise on the way.
const SETTINGS = { steps: 2, sampler: "ddpm", td: 0, seed: 3 };

/** The estimates of the last step. */
async function pictures(device) {
  const query = new URLSearchParams({ device, panel: "chain", model: "shapes-uint8", samples: 2, strategy: "previous", ...SETTINGS });
  const studio = await Studio.open(browser, site, `?${query}`);
  const facts = await studio.finished();
  await studio.click("estimate x_pred");
  await studio.until("it has played", ({ shown }) => shown === String(SETTINGS.steps));
  await studio.page.waitForTimeout(300);
  const found = await studio.exported();
  await studio.shoot(`device-${device}`);
  await studio.close();
  return { found, facts };
}

test("a seed gives the same picture on WebGPU, on the processor and in the native program", { timeout: 240_000 }, async (t) => {
  const { found: onCpu, facts: cpu } = await pictures("cpu");
  assert.match(cpu.device, /^CPU: asked for/);
  const { found: onGpu, facts: gpu } = await pictures("webgpu");
  assert.match(gpu.device, /WebGPU/);
  assert.equal(gpu.drawing, "BrowserWebGpu");
  // Half-made pictures: a bit near 0 may fall to either side, and the lowest bits are no more than noise yet.
  const differs = difference(onCpu, onGpu);
  t.diagnostic(`values that differ between the processor and WebGPU: ${(100 * differs).toFixed(2)} %`);
  assert.ok(differs < 0.02, `${differs}`);

  const program = process.env.PROGRAM;
  if (!program) return t.diagnostic("PROGRAM is not set: not compared with the native program");
  const folder = mkdtempSync(path.join(tmpdir(), "bit-diffusion-"));
  const sheet = path.join(folder, "sheet.png");
  const { steps, sampler, td, seed } = Object.fromEntries(Object.entries(SETTINGS).map(([name, value]) => [name, String(value)]));
  const how = ["--steps", steps, "--sampler", sampler, "--td", td, "--self-cond", "previous", "--n", "2", "--seed", seed];
  execFileSync(program, ["sample", "shapes-uint8", ...how, "--device", "cpu", "--out", sheet]);
  const native = decodePng(readFileSync(sheet));
  const ofNative = difference(onCpu, native);
  t.diagnostic(`values that differ between the page and the native program: ${(100 * ofNative).toFixed(2)} %`);
  assert.ok(ofNative < 0.02, `${ofNative}`);
});
