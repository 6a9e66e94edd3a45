# Sourced by bench/speed.sh and bench/browser.sh: `python`, of an environment with PyTorch and onnxruntime. It is installed into the cache folder
# (BIT_DIFFUSION_CACHE, by default ~/.cache/bit-diffusion) if it is not there: some gigabytes, once.
# shellcheck shell=bash
cache=${BIT_DIFFUSION_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bit-diffusion}
python=$cache/bench-python/bin/python
mkdir -p "$cache"
if ! "$python" -c "import torch, onnxruntime, onnx, safetensors" 2>/dev/null; then
    python3 -m venv "$cache/bench-python"
    "$python" -m pip install --quiet torch==2.9.1 onnxruntime==1.31.1 onnx==1.23.2 safetensors==0.8.0 numpy==2.4.6
fi
