#!/usr/bin/env bash
# Captions of COCO, from the pictures to the tables: features, two captioners, and the paper's Tables 3 and 4 in small.
#
#   bench/coco.sh OUT DATA ENCODER [STEPS [STEPS_AR]]
#
# DATA is a folder with an archive of pictures (.tar) and a table of captions (.tsv) to train on (`train` in their names) and to test with (`val`).
# ENCODER is EfficientNet-lite0 as a safetensors file (bench/features_to_safetensors.py makes it). What is there already is not made again; a
# run that was broken off goes on. BIT_DIFFUSION names the program, by default that of this folder.
set -euo pipefail
out=$(mkdir -p "${1:?usage: bench/coco.sh OUT DATA ENCODER [STEPS [STEPS_AR]]}" && cd "$1" && pwd)
data=$(cd "${2:?DATA is missing}" && pwd)
encoder=$(realpath "${3:?ENCODER is missing}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${BIT_DIFFUSION:-cargo run --release --quiet --}

# What the captioners' eyes learn to see: 36 tokens a picture.
[ -f "$out/train.safetensors" ] ||
    $program features "$encoder" --data "$data" --size 192 --batch-size 32 --out "$out/train.safetensors"

# train PRESET STEPS
train() {
    local run=$out/$1 go=()
    [ -d "$run" ] && go=(--resume)
    $program train "$1" --data "$data" --features "$out/train.safetensors" --seed 1 --steps "$2" --sheet-every 0 --out "$run" "${go[@]}"
}
train coco-small "${4:-20000}"
train coco-small-ar "${5:-4000}"

mkdir -p "$out/table"
$program eval "$out/coco-small" --data "$data" --baseline "$out/coco-small-ar" \
    --n 257 --steps 5,10,20,40 --td 0,2,5,10 --seeds 3 --out "$out/table" | tee "$out/table/table.txt"
