"""The feature networks by PyTorch, to check the Rust ones: the Inception is pytorch-fid's own code, the ResNet-56 a twin of our own.

    python3 -m pip install numpy==2.4.6 torch==2.15.0 torchvision==0.29.2 pytorch-fid==0.3.0
    python3 core/tests/golden/features_reference.py

writes `features.json` beside this file: the shapes of the weights, and some of the features and logits of two pictures. No weights are
stored: both sides make them from the names of the tensors, with the generator of `reference.py` (here for whole arrays at once).
"""

import json
import pathlib

import numpy as np
import pytorch_fid.inception as fid
import torch
import torchvision
from torch import nn
from torch.nn.functional import avg_pool2d, pad, relu

from reference import GOLDEN, MASK, mix

NORMS = ["weight", "bias", "running_mean", "running_var"]


# --- Pseudo-random weights and pictures ------------------------------------------------------------------------------


def stream(seed, n):
    """The first n outputs of `Rng::new(seed)`, 64 bits each."""
    with np.errstate(over="ignore"):
        z = np.uint64(mix(seed)) + np.uint64(GOLDEN) * np.arange(1, n + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(seed, n):
    return ((stream(seed, n) >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52


def fnv(name):
    """FNV-1a of the name: the seed of its tensor."""
    out = 0xCBF29CE484222325
    for byte in name.encode():
        out = ((out ^ byte) * 0x100000001B3) & MASK
    return out


def weight(name, shape):
    u = uniform(fnv(name), int(np.prod(shape)))
    if len(shape) > 1:
        # The variance 2/fan-in keeps the size of what passes a ReLU.
        values = (2 * u - 1) * np.sqrt(6 / np.prod(shape[1:]))
    else:
        low, high = {"weight": (0.8, 1.2), "running_var": (0.5, 1.5)}.get(name.rsplit(".", 1)[1], (-0.1, 0.1))
        values = low + (high - low) * u
    return torch.tensor(values.astype(np.float32).reshape(shape))


def fill(net):
    """A state dict for the network, and the names and shapes in it: of kernels and matrices, of norms, of other vectors."""
    state, kernels, norms, biases = {}, {}, {}, {}
    for name, value in net.state_dict().items():
        prefix, part = name.rsplit(".", 1)
        if part == "num_batches_tracked":
            state[name] = value
            continue
        state[name] = weight(name, tuple(value.shape))
        if value.ndim > 1:
            kernels[name] = list(value.shape)
        elif f"{prefix}.running_var" in net.state_dict():
            assert part in NORMS
            norms[prefix] = value.shape[0]
        else:
            biases[name] = value.shape[0]
    return state, {"kernels": kernels, "norms": norms, "biases": biases}


def pictures(size):
    """Two pictures of noise, the second with a quarter of the first one's light."""
    values = (stream(9, 2 * 3 * size * size) >> np.uint64(56)).reshape(2, 3, size, size)
    values[1] //= 4
    return torch.tensor(values.astype(np.float64))


# --- ResNet-56 (He et al. 2016, option A) ------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.grows = b - a
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, 2 if self.grows else 1, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        if self.grows:
            x = pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.grows // 2, self.grows // 2))
        return relu(x + y)


class ResNet56(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        stage = lambda a, b: nn.Sequential(Block(a, b), *[Block(b, b) for _ in range(8)])
        self.layer1, self.layer2, self.layer3 = stage(16, 16), stage(16, 32), stage(32, 64)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        x = (x / 255 - mean[:, None, None].double()) / std[:, None, None].double()
        x = self.layer3(self.layer2(self.layer1(relu(self.bn1(self.conv1(x))))))
        features = avg_pool2d(x, 8).flatten(1)
        return features, self.linear(features)


def resnet():
    net = ResNet56().double().eval()
    state, shapes = fill(net)
    net.load_state_dict(state)
    features, logits = net(pictures(32))
    return features[:, ::8], logits, shapes


# --- Inception -----------------------------------------------------------------------------------------------------------


def inception():
    plain = torchvision.models.inception_v3(num_classes=1008, aux_logits=False, init_weights=False, weights=None)
    state, shapes = fill(plain)
    # pytorch-fid's network downloads its weights; these are ours.
    fid.load_state_dict_from_url = lambda *_, **__: state
    net = fid.InceptionV3([3]).double().eval()
    (features,) = net(pictures(20) / 255)
    return features[:, ::64, 0, 0], torch.zeros(2, 0), shapes


def case(name, size, result):
    features, logits, shapes = result
    flat = lambda tensor: [float(f"{v:.7g}") for v in tensor.detach().reshape(-1).tolist()]
    return {"name": name, "size": size, "features": flat(features), "logits": flat(logits), **shapes}


def main():
    cases = [case("CIFAR-10 ResNet-56", 32, resnet()), case("FID Inception", 20, inception())]
    text = json.dumps(cases, separators=(",", ":")).replace('{"name"', '\n{"name"')
    pathlib.Path(__file__).with_name("features.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
