// What the studio asks of the browser. The program itself is Rust: see ../src.

/** Adapters that are played by the processor, by how they call themselves. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render/i;

/**
 * The graphics card that WebGPU has to offer: `kind` is "hardware", "software" or "none", `name` what it calls itself, and `reason` why there
 * is none, as a phrase.
 */
export async function findAdapter() {
  const none = (reason) => ({ kind: "none", name: "", reason });
  if (!isSecureContext) return none("WebGPU needs an address that begins with https");
  if (!navigator.gpu) return none("this browser has no WebGPU");
  let adapter;
  try {
    adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  } catch (error) {
    return none(`WebGPU does not start (${error.message})`);
  }
  if (!adapter) return none("WebGPU finds no graphics card");
  const { vendor = "", architecture = "", description = "", isFallbackAdapter = false } = adapter.info ?? {};
  const name = description || `${vendor} ${architecture}`.trim() || "a graphics card";
  const isSoftware = isFallbackAdapter || adapter.isFallbackAdapter || SOFTWARE.test(`${vendor} ${architecture} ${description}`);
  // The compute library measures itself with it, and does not start without.
  if (!adapter.features.has("timestamp-query")) return none(`${name} cannot measure time (timestamp-query)`);
  return { kind: isSoftware ? "software" : "hardware", name, reason: "" };
}

/** Whether WebGL 2 draws. */
export function hasWebgl() {
  const context = document.createElement("canvas").getContext("webgl2");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return Boolean(context);
}

/** Puts an unused canvas in the place of one that has been drawn on: a canvas cannot change from WebGPU to WebGL. */
export function freshCanvas(canvas) {
  const fresh = canvas.cloneNode(false);
  canvas.replaceWith(fresh);
  return fresh;
}

/**
 * Lets the browser draw and listen before it goes on. A promise that is already kept would not: it goes before both. A timer would wait four
 * milliseconds each time, and a whole second while another tab is in front.
 */
export function handBack() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Hands a file to the browser, which saves it or asks where to. */
export function download(name, bytes) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  // The browser has to have begun before the address may go.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Lets a person choose files; each is given to `take` as its name and its bytes, or `undefined` and the reason. */
export function chooseFiles(take) {
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = true;
  input.addEventListener("change", async () => {
    for (const file of input.files) {
      try {
        take(file.name, new Uint8Array(await file.arrayBuffer()), "");
      } catch (error) {
        take(file.name, undefined, error.message);
      }
    }
  });
  input.click();
}

/** Fetches a file beside the page; `tell` hears how many bytes are here, and how many there are if that is known. */
export async function fetchFile(path, tell) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`the server says ${response.status} to ${path}`);
  // Of a compressed answer the length is that of the compressed bytes.
  const length = response.headers.has("content-encoding") ? null : response.headers.get("content-length");
  const total = length === null ? undefined : Number(length);
  const parts = [];
  let received = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    received += value.length;
    tell(received, total);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** What the address says after its question mark. */
export function query() {
  return location.search.slice(1);
}

/** Changes what the address says after its question mark, without loading anything. */
export function setQuery(query) {
  history.replaceState(null, "", `?${query}`);
}

/** The address without settings. */
export function address() {
  return location.origin + location.pathname;
}
