#!/usr/bin/env bash
# How fast the engine is on a processor: against PyTorch and onnxruntime, side by side, and how its cost grows.
#
#   bench/speed.sh OUT [--rounds 9] [--chain 100] [--only contest|self-conditioning|growth] [--model NAME] [--threads 2]
#                       [--turn SECONDS] [--alone]
#
# OUT gets speed.txt, all that is printed, speed.md, the table of bench/README.md, and speed.json, all numbers. PyTorch and onnxruntime are installed into a Python environment of
# their own in the cache folder (BIT_DIFFUSION_CACHE, by default ~/.cache/bit-diffusion): some gigabytes, once. About half an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?usage: bench/speed.sh OUT [FLAG…]}
shift

source bench/speed/python.sh
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
mkdir -p "$out"

# The whole workspace, because another selection of packages would compile all dependencies anew.
cargo build --workspace --release --locked --example speed
"$python" bench/speed/driver.py "$CARGO_TARGET_DIR/release/examples/speed" "$out" "$@" | tee "$out/speed.txt"
