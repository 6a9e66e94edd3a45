// What both contenders of `bench/browser.sh` are timed by.

/** Seconds that a run takes, the mean of `repeat`; with `isWanted`, what the last gave. */
export async function timed(repeat, isWanted, run) {
  let found;
  const start = performance.now();
  for (let i = 0; i < repeat; i += 1) found = await run();
  const seconds = (performance.now() - start) / 1000 / repeat;
  return isWanted ? { seconds, x_pred: Array.from(found) } : { seconds };
}

/** The bytes of a file beside the page. */
export async function bytes(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`the server says ${response.status} to ${path}`);
  return new Uint8Array(await response.arrayBuffer());
}
