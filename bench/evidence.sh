#!/usr/bin/env bash
# The numbers of the README: what self-conditioning, time differences, samplers and encodings do to the demo models, and captions
# against a baseline. (bench/coco.sh has those of photographs.)
#
#   bench/evidence.sh OUT [CIFAR10 FEATURES]
#
# OUT gets a folder for each question, with a table (table.txt), eval.csv, eval.json and a plot (eval.png). With a folder of CIFAR-10's binary
# batches and a feature network (bench/features_to_safetensors.py makes it) the CIFAR-10 model is measured too. About half an hour on two cores.
# BIT_DIFFUSION names the program, by default that of this folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?usage: bench/evidence.sh OUT [CIFAR10 FEATURES]}
program=${BIT_DIFFUSION:-cargo run --release --quiet --}

# question NAME MODEL FLAG…
question() {
    local folder=$out/$1
    mkdir -p "$folder"
    shift
    $program eval "$@" --out "$folder" >"$folder/table.txt"
    cat "$folder/table.txt"
    echo
}

many=(--n 128 --seeds 3)
question time-difference shapes-uint8 "${many[@]}" --steps 2,5,10,20 --td 0,0.5,1,2,3,5
question self-conditioning shapes-uint8 "${many[@]}" --evaluations 4,10,20,50 --self-cond off,previous,momentum=0.5,guide=3
question samplers shapes-uint8 "${many[@]}" --evaluations 6,12,24,48 --sampler ddim,ddpm,dpm-solver-2,dpm-solver-3,dpm-solver-2m
for encoding in uint8 gray rand; do
    question "encoding-$encoding" "shapes-$encoding" "${many[@]}" --steps 10,100
done
question captions shapes-captions --n 256 --seeds 3 --steps 5,10,20,40 --td 0,1,2,3,5 --baseline shapes-captions-ar
if [ $# -ge 3 ]; then
    question cifar10 cifar10-small --data "$2" --features "$3" --n 256 --seeds 2 --steps 20 --td 0,3 --self-cond off,previous
fi
