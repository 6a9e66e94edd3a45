// Loads the program and shows how far that is; says why, in words, if it cannot run. The addresses are in the script's element: see Trunk.toml.

const script = document.querySelector("script[data-wasm]");
const message = document.getElementById("message");
const text = document.getElementById("loading");
const bar = document.getElementById("bytes");
let hasDrawn = false;

/** A readable page in place of the studio. */
function fail(reason) {
  const [title, cure] = hasDrawn
    ? ["The studio has stopped", "Reload the page to start it again. Settings are kept; a training run is not."]
    : [
        "The studio cannot start here",
        "It draws with WebGPU or WebGL 2, which current versions of Chrome, Edge, Firefox and Safari have. If yours is one of them, see that " +
          "hardware acceleration is switched on in its settings, or try another browser. The same studio also runs as a program on Linux, " +
          "macOS and Windows.",
      ];
  const paragraphs = [`Why: ${reason}.`, cure].map((line) => Object.assign(document.createElement("p"), { textContent: line }));
  message.replaceChildren(Object.assign(document.createElement("h1"), { textContent: title }), ...paragraphs);
  message.hidden = false;
  document.getElementById("studio").hidden = true;
}

/** The same response, of which the bar shows every byte. */
function shown(response) {
  // Of a compressed answer the length is that of the compressed bytes.
  const length = response.headers.has("content-encoding") ? 0 : Number(response.headers.get("content-length"));
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  let received = 0;
  const counter = new TransformStream({
    transform(chunk, controller) {
      received += chunk.length;
      if (length > 0) {
        bar.max = length;
        bar.value = received;
      }
      text.textContent = `Loading Bit Diffusion Studio: ${megabytes(received)}${length > 0 ? ` of ${megabytes(length)}` : ""} MB`;
      controller.enqueue(chunk);
    },
    flush() {
      text.textContent = "Starting Bit Diffusion Studio…";
    },
  });
  return new Response(response.body.pipeThrough(counter), { headers: { "content-type": "application/wasm" } });
}

/** The program's own words for what went wrong, where it has some. */
const reasonOf = (error) => document.getElementById("studio").dataset.stopped ?? error?.message ?? String(error);

addEventListener("error", (event) => fail(reasonOf(event.error ?? event)));
addEventListener("unhandledrejection", (event) => fail(reasonOf(event.reason)));

try {
  if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, or it is switched off");
  const [program, response] = await Promise.all([import(script.dataset.js), fetch(script.dataset.wasm)]);
  if (!response.ok) throw new Error(`the program cannot be loaded: the server says ${response.status}`);
  await program.default({ module_or_path: shown(response) });
  window.wasmBindings = program;
  await program.run(() => {
    hasDrawn = true;
    message.hidden = true;
  });
} catch (error) {
  fail(reasonOf(error));
}
