// A contender of `bench/browser.sh`: a page of its own in a browser of its own, with the engine (`ours`) or onnxruntime-web (`onnx`).
//
// Like the other contenders it reads one question a line and answers with one. DIST is the folder that the page comes from.

import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { SOFTWARE_GPU, launch, serve } from "../../e2e/browser.js";

const [who, device] = process.argv.slice(2);
const site = await serve();
const browser = await launch(device === "webgpu" ? SOFTWARE_GPU : []);
try {
  const page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && console.error(message.text()));
  await page.goto(site.address);
  for await (const line of createInterface({ input: process.stdin })) {
    const [[question, given]] = Object.entries(JSON.parse(line));
    const { x_pred, ...answer } = await page.evaluate(
      async ([module, question, given]) => (await import(module))[question](given),
      [`${site.address}${who}.js`, question, { device, ...given }],
    );
    if (given.out) await writeFile(given.out, Float32Array.from(x_pred));
    console.log(JSON.stringify(answer));
  }
} finally {
  await browser.close();
  site.close();
}
