// A contender of `bench/browser.sh`: onnxruntime-web, with files that ../in_torch.py exports. The loop of DDIM is that of ../in_onnx.py.

import { bytes, timed } from "./watch.js";

const sessions = {};
let ort, name, provider;

export async function load({ model, device, file }) {
  [name, provider] = [model, device === "webgpu" ? "webgpu" : "wasm"];
  ort = await import(`./onnxruntime/${file}.min.mjs`);
  // The engine has no more in a page.
  ort.env.wasm.numThreads = 1;
  return {};
}

/** A network for a batch of this size, with what its chains begin with. */
async function session(batch) {
  const path = `onnx/${name}.onnx.${batch}`;
  const [network, x_T, condition] = await Promise.all(["", ".x_T.f32", ".condition.f32"].map((end) => bytes(path + end)));
  const made = await ort.InferenceSession.create(network, { executionProviders: [provider] });
  const shapes = Object.fromEntries(made.inputMetadata.map((input) => [input.name, input.shape]));
  const tensor = (bytes, shape) => new ort.Tensor("float32", new Float32Array(bytes.buffer), shape);
  return { made, shapes, x_T: tensor(x_T, shapes.x_t), condition: shapes.condition && tensor(condition, shapes.condition) };
}

export async function chain({ batch, repeat, times, out }) {
  sessions[batch] ??= await session(batch);
  return timed(repeat, out, () => ddim(sessions[batch], batch, times));
}

async function ddim({ made, shapes, x_T, condition }, batch, times) {
  let x_t = x_T;
  let x_pred = new ort.Tensor("float32", new Float32Array(x_T.size), shapes.x_t);
  for (const [gamma, keep, add] of times) {
    const given = { x_t, x_pred, gamma: new ort.Tensor("float32", new Float32Array(batch).fill(gamma), [batch]) };
    if (condition) given.condition = condition;
    const { y } = await made.run(given);
    const [from, state, estimate] = [x_t.data, new Float32Array(x_T.size), y.data];
    for (let i = 0; i < state.length; i += 1) {
      estimate[i] = Math.min(1, Math.max(-1, estimate[i]));
      state[i] = keep * from[i] + add * estimate[i];
    }
    x_t = new ort.Tensor("float32", state, shapes.x_t);
    x_pred = y;
  }
  return x_pred.data;
}
