#!/usr/bin/env bash
# The README's pictures of the panels, light and dark, with the real engine: drawn without a window by ui/tests/looks.rs, brought to 256
# colours by ImageMagick.
#
#   e2e/screens.sh OUT      writes studio.png (the first panel) and a picture for each other panel into OUT, by rights `assets`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?usage: e2e/screens.sh OUT}
mkdir -p "$out"
# Another program may be called convert too; ImageMagick's is beside import.
convert=$(dirname "$(command -v import)")/convert
screens=$(mktemp -d)
trap 'rm -r "$screens"' EXIT
LOOKS=$screens cargo test --workspace --release --locked --test looks
small() { "$convert" "$screens/$1.png" -dither None -colors 256 -strip -define png:compression-level=9 "PNG8:$out/$2.png"; }
small chain-dark studio
small time-difference-light time-difference
small bits-dark bits
small self-conditioning-light self-conditioning
small one-bit-dark one-bit
small captions-light captions
small train-dark train
