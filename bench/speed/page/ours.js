// A contender of `bench/browser.sh`: the engine (../../../web/examples/page_speed.rs).

import start, { Subject } from "./page_speed.js";
import { bytes, timed } from "./watch.js";

let subject;
let prepared;

export async function load({ model, device, stock }) {
  await start();
  subject = await Subject.load(await bytes(`models/${model}.safetensors`), device, stock ?? false);
  return {};
}

export async function chain({ batch, n_steps, only, repeat, out }) {
  if (prepared !== batch) subject.prepare(batch);
  prepared = batch;
  return timed(repeat, out, () => subject.chain(n_steps, only ?? n_steps));
}
