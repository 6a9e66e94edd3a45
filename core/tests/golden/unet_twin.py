"""A PyTorch twin of the U-Net, written from the description of the paper and the authors' code, to check the Rust one.

    python3 -m pip install numpy==2.2.6 torch
    python3 core/tests/golden/unet_twin.py

writes `unet.json` beside this file: for small networks, the output, the loss and the gradient of every parameter. No weights are
stored: both sides fill the parameters, in the order in which they are declared, from the same generator.
"""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate, silu

from reference import Rng, int2bit


def groups(channels):
    return next(g for g in range(max(1, min(channels // 4, 32)), 0, -1) if channels % g == 0)


def norm(channels):
    return nn.GroupNorm(groups(channels), channels, eps=1e-5)


class Dense(nn.Module):
    """A linear layer with its weight as [in, out]."""

    def __init__(self, a, b):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(a, b)), nn.Parameter(torch.zeros(b))

    def forward(self, x):
        return x @ self.weight + self.bias


class Time(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.width = width
        self.first, self.second = Dense(width, 4 * width), Dense(4 * width + classes, 4 * width)

    def forward(self, gamma, labels):
        rates = 10000.0 ** (-2 * torch.arange(self.width // 2, dtype=torch.float64) / self.width)
        angles = 1000 * gamma[:, None] * rates
        hidden = silu(self.first(torch.cat([angles.sin(), angles.cos()], 1)))
        return silu(self.second(torch.cat([hidden, labels], 1)))


class Residual(nn.Module):
    def __init__(self, a, b, width):
        super().__init__()
        self.norm_1, self.conv_1 = norm(a), nn.Conv2d(a, b, 3, padding=1)
        self.time = Dense(4 * width, 2 * b)
        self.norm_2, self.conv_2 = norm(b), nn.Conv2d(b, b, 3, padding=1)
        self.shortcut = nn.Conv2d(a, b, 1) if a != b else None

    def forward(self, x, time):
        h = self.conv_1(silu(self.norm_1(x)))
        scale, shift = self.time(time)[:, :, None, None].chunk(2, 1)
        h = self.conv_2(silu(self.norm_2(h) * (1 + scale) + shift))
        return ((self.shortcut(x) if self.shortcut else x) + h) / math.sqrt(2)


class Attention(nn.Module):
    def __init__(self, c, head_dim):
        super().__init__()
        self.heads = max(1, c // head_dim)
        self.norm, self.qkv, self.out = norm(c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        weights = torch.einsum("bhci,bhcj->bhij", q, k).div(math.sqrt(c // self.heads)).softmax(-1)
        mixed = torch.einsum("bhij,bhcj->bhci", weights, v).reshape(b, c, h, w)
        return (x + self.out(mixed)) / math.sqrt(2)


class Block(nn.Module):
    def __init__(self, a, b, width, attends, head_dim):
        super().__init__()
        self.residual = Residual(a, b, width)
        self.attention = Attention(b, head_dim) if attends else None


class Stage(nn.Module):
    def __init__(self, blocks, resample):
        super().__init__()
        self.blocks, self.resample = nn.ModuleList(blocks), resample


class UNet(nn.Module):
    def __init__(self, size, bits, out, width, multipliers, n_blocks, attention_sizes, head_dim, classes, kernel):
        super().__init__()
        self.input, self.input_norm, self.time = nn.Conv2d(2 * bits, width, 3, padding=1), norm(width), Time(width, classes)
        skips, c = [width], width
        down, up = [], []
        for i, m in enumerate(multipliers):
            blocks = []
            for _ in range(n_blocks):
                blocks.append(Block(c, width * m, width, size >> i in attention_sizes, head_dim))
                c = width * m
                skips.append(c)
            last = i + 1 == len(multipliers)
            down.append(Stage(blocks, None if last else nn.Conv2d(c, c, 3, stride=2, padding=1)))
            if not last:
                skips.append(c)
        for i, m in reversed(list(enumerate(multipliers))):
            blocks = []
            for _ in range(n_blocks + 1):
                blocks.append(Block(c + skips.pop(), width * m, width, size >> i in attention_sizes, head_dim))
                c = width * m
            up.append(Stage(blocks, nn.Conv2d(c, c, 3, padding=1) if i else None))
        self.down, self.up = nn.ModuleList(down), nn.ModuleList(up)
        self.output_norm, self.output = norm(c), nn.Conv2d(c, out, kernel, padding=kernel // 2)

    def forward(self, x_t, x_pred, gamma, labels):
        time = self.time(gamma, labels)
        x = self.input_norm(self.input(torch.cat([x_t, x_pred], 1)))
        skips = [x]
        for stage in self.down:
            for block in stage.blocks:
                x = block.residual(x, time)
                skips.append(x)
                x = block.attention(x) if block.attention else x
            if stage.resample:
                x = stage.resample(x)
                skips.append(x)
        for stage in self.up:
            for block in stage.blocks:
                x = block.residual(torch.cat([x, skips.pop()], 1), time)
                x = block.attention(x) if block.attention else x
            if stage.resample:
                x = stage.resample(interpolate(x, scale_factor=2, mode="nearest"))
        return self.output(silu(self.output_norm(x)))


def case(name, softmax):
    alphabet, n = 4, 2
    classes, size, batch = 3, 8, 2
    out = alphabet if softmax else n
    net = UNet(size, n, out, 8, [1, 2], 1, [4], 8, classes, 1 if softmax else 3).double()
    rng = Rng(5)
    for parameter in net.parameters():
        parameter.data = torch.tensor(0.2 * rng.normals(tuple(parameter.shape)))
    x_t = torch.tensor(Rng(1).normals((batch, n, size, size)))
    x_pred = torch.tensor(np.clip(Rng(2).normals((batch, n, size, size)), -1, 1))
    x_0 = torch.tensor(np.sign(Rng(3).normals((batch, n, size, size))))
    labels = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    y = net(x_t, x_pred, torch.tensor([0.3, 0.9], dtype=torch.float64), labels)
    if softmax:
        codes = np.arange(alphabet) ^ (np.arange(alphabet) >> 1)
        table = torch.tensor(int2bit(codes, n) * 2.0 - 1)
        y = torch.einsum("bkhw,kn->bnhw", y.softmax(1), table)
    loss = (y - x_0).square().mean()
    loss.backward()
    flat = lambda tensor: [float(f"{v:.7g}") for v in tensor.detach().reshape(-1).tolist()]
    return {
        "name": name,
        "softmax": softmax,
        "n_parameters": sum(p.numel() for p in net.parameters()),
        "output": flat(y),
        "loss": float(loss),
        # For each parameter: the sum of its gradient, and of its absolute value.
        "gradients": [[float(f"{p.grad.sum():.7g}"), float(f"{p.grad.abs().sum():.7g}")] for p in net.parameters()],
    }


def main():
    cases = [case("linear", False), case("softmax", True)]
    pathlib.Path(__file__).with_name("unet.json").write_text(json.dumps(cases, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
