#!/usr/bin/env bash
# Captions of COCO, from the pictures to the tables: features, a baseline that writes word by word, what it says of all pictures, a captioner by
# bit diffusion that learns from that, and the paper's Tables 3 and 4 in small.
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

# features NAME FLAG…: 36 tokens a picture.
features() {
    local file=$out/$1.safetensors
    shift
    [ -f "$file" ] || $program features "$encoder" --data "$data" --size 192 --batch-size 32 --out "$file" "$@"
}
features train
features val --test

# train PRESET STEPS DATA
train() {
    local run=$out/$1 go=()
    [ -d "$run" ] && go=(--resume)
    $program train "$1" --data "$3" --features "$out/train.safetensors" --seed 1 --steps "$2" --sheet-every 0 --out "$run" "${go[@]}"
}
train coco-features-ar "${5:-800}" "$data"

# What the baseline says of the pictures, beside the same pictures.
relabelled=$out/relabelled
if [ ! -d "$relabelled" ]; then
    mkdir -p "$relabelled.part"
    ln -sf "$data"/*train*.tar "$relabelled.part"
    $program relabel "$out/coco-features-ar" --data "$data" --features "$out/train.safetensors" --out "$relabelled.part/train.tsv"
    mv "$relabelled.part" "$relabelled"
fi
train coco-small "${4:-6000}" "$relabelled"

mkdir -p "$out/table"
$program eval "$out/coco-features-ar" --data "$data" --features "$out/val.safetensors" --n 257 --out "$out/table" | tee "$out/table/baseline.txt"
$program eval "$out/coco-small" --data "$data" --n 257 --steps 5,10,20,40 --td 0,2,5,10 --seeds 3 --out "$out/table" | tee "$out/table/table.txt"
