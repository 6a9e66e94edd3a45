#!/usr/bin/env bash
# How fast the engine is in a page: against onnxruntime-web, side by side, on one thread of the processor and through WebGPU.
#
#   bench/browser.sh OUT [--rounds 7] [--chain 20] [--model NAME] [--device cpu|webgpu] [--turn SECONDS]
#
# OUT gets speed.txt, all that is printed, speed.md, the table of bench/README.md, and speed.json, all numbers. `./check.sh` has to have been run before: the compiler for the
# browser, wasm-bindgen and Chromium (CHROMIUM, by default /usr/bin/chromium) are those it installs. PyTorch, which exports the networks, and onnxruntime-web
# are installed into the cache folder (BIT_DIFFUSION_CACHE, by default ~/.cache/bit-diffusion), once. A quarter of an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?usage: bench/browser.sh OUT [FLAG…]}
shift

source bench/speed/python.sh
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
onnxruntime=$cache/bench-node/node_modules/onnxruntime-web
if ! grep -qs '"version": "1.30.0"' "$onnxruntime/package.json"; then
    npm install --silent --no-audit --no-fund --prefix "$cache/bench-node" onnxruntime-web@1.30.0
fi
[ -d e2e/node_modules ] || (cd e2e && npm ci --silent --no-audit --no-fund)

# The whole workspace, because another selection of packages would compile all dependencies anew.
cargo build --workspace --release --locked --example speed
wasm=(env "CARGO_TARGET_DIR=$CARGO_TARGET_DIR-wasm")
if ! rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown; then
    # Debian's compiler, as in check.sh.
    wasm+=("PATH=/usr/bin:$cache/tools/bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort)
fi
# With the flags that trunk has for the page, so that all but the example is there already.
"${wasm[@]}" cargo build --manifest-path web/Cargo.toml --target wasm32-unknown-unknown --profile page --locked --example page_speed

site=$out/site
rm -rf "$site"
mkdir -p "$site"
cp bench/speed/page/* "$site"
ln -s "$PWD/assets/models" "$site/models"
ln -s "$onnxruntime/dist" "$site/onnxruntime"
"$cache/tools/bin/wasm-bindgen" --target web --no-typescript --out-dir "$site" \
    "$CARGO_TARGET_DIR-wasm/wasm32-unknown-unknown/page/examples/page_speed.wasm"
# One thread, also for what is worked out beforehand.
export OMP_NUM_THREADS=1 DIST=$site
"$python" bench/speed/browser.py "$CARGO_TARGET_DIR/release/examples/speed" "$site" "$out" "$@" | tee "$out/speed.txt"
