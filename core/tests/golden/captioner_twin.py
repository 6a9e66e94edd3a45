"""A PyTorch twin of the captioner, both methods, written from the description of the paper and the authors' code.

    python3 -m pip install numpy==2.2.6 torch
    python3 core/tests/golden/captioner_twin.py

writes `captioner.json` beside this file: for small networks, the output, the loss and the gradient of every parameter. No weights are
stored: both sides fill the parameters, in the order in which they are declared, from the same generator.
"""

import json
import math
import pathlib

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, silu

from reference import Rng, int2bit
from unet_twin import Dense, norm

SIZE, WIDTHS, WIDTH, HEADS, LAYERS, LENGTH, BATCH, K, BITS = 8, [8, 12], 16, 2, 2, 5, 2, 6, 3


class Norm(nn.LayerNorm):
    def __init__(self, width):
        super().__init__(width, eps=1e-5)


class EyeBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm_1, self.conv_1 = norm(c), nn.Conv2d(c, c, 3, padding=1)
        self.norm_2, self.conv_2 = norm(c), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.conv_2(silu(self.norm_2(self.conv_1(silu(self.norm_1(x))))))


class EyeStage(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.enter, self.block = nn.Conv2d(a, b, 3, stride=stride, padding=1), EyeBlock(b)

    def forward(self, x):
        return self.block(self.enter(x))


class Eye(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [3] + WIDTHS
        self.stages = nn.ModuleList(EyeStage(a, b, 1 if i == 0 else 2) for i, (a, b) in enumerate(zip(sizes, sizes[1:])))
        self.project, self.norm = Dense(WIDTHS[-1], WIDTH), Norm(WIDTH)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        side = x.shape[-1]
        x = self.norm(self.project(x.flatten(2).transpose(1, 2)))
        # Columns in the first half of the features, rows in the second: sine and cosine side by side.
        quarter = WIDTH // 4
        rates = 10000.0 ** (-torch.arange(quarter, dtype=torch.float64) / quarter)
        wave = lambda places: torch.stack([(places[:, None] * rates).sin(), (places[:, None] * rates).cos()], 2).flatten(1)
        places = torch.arange(side * side)
        return x + torch.cat([wave((places % side).double()), wave((places // side).double())], 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.output = (Dense(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, seen, mask=None):
        heads = lambda y: y.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
        q, k, v = heads(self.query(x)), heads(self.key(seen)), heads(self.value(seen))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        return self.output((scores.softmax(3) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.to_tokens = Norm(WIDTH), Attention()
        self.norm_2, self.to_picture = Norm(WIDTH), Attention()
        self.norm_3, self.widen, self.narrow = Norm(WIDTH), Dense(WIDTH, 4 * WIDTH), Dense(4 * WIDTH, WIDTH)

    def forward(self, x, picture, mask=None):
        y = self.norm_1(x)
        x = x + self.to_tokens(y, y, mask)
        x = x + self.to_picture(self.norm_2(x), picture)
        return x + self.narrow(gelu(self.widen(self.norm_3(x))))


class Time(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first, self.second = Dense(width, 4 * width), Dense(4 * width, 4 * width)

    def forward(self, gamma):
        rates = 10000.0 ** (-2 * torch.arange(self.width // 2, dtype=torch.float64) / self.width)
        angles = 1000 * gamma[:, None] * rates
        return silu(self.second(silu(self.first(torch.cat([angles.sin(), angles.cos()], 1)))))


class Table(nn.Module):
    """A parameter as a module, so that it comes in the order of its declaration."""

    def __init__(self, n):
        super().__init__()
        self.rows = nn.Parameter(torch.zeros(n, WIDTH))


class Captioner(nn.Module):
    def __init__(self, method, outputs):
        super().__init__()
        self.eye = Eye()
        if method == "bits":
            self.bits, self.time = Dense(2 * BITS, WIDTH), Time(WIDTH // 4)
        else:
            self.embedding = Table(K + 1)
        self.positions = Table(LENGTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.output = Norm(WIDTH), Dense(WIDTH, outputs)

    def denoise(self, x_t, x_pred, gamma, pictures):
        x = self.bits(torch.cat([x_t, x_pred], 1).transpose(1, 2)) + self.positions.rows + self.time(gamma)[:, None]
        picture = self.eye(pictures)
        for layer in self.layers:
            x = layer(x, picture)
        return self.output(self.norm(x)).transpose(1, 2)

    def guess_next(self, tokens, pictures):
        begun = torch.cat([torch.full((len(tokens), 1), K), tokens[:, :-1]], 1)
        x = self.embedding.rows[begun] + self.positions.rows
        picture = self.eye(pictures)
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, picture, mask)
        return self.output(self.norm(x))


def case(name):
    outputs = BITS if name == "linear" else K
    net = Captioner("tokens" if name == "autoregressive" else "bits", outputs).double()
    rng = Rng(5)
    for parameter in net.parameters():
        parameter.data = torch.tensor(0.2 * rng.normals(tuple(parameter.shape)))
    pictures = torch.tensor(Rng(4).normals((BATCH, 3, SIZE, SIZE)))
    tokens = torch.tensor([[2, 3, 1, 0, 0], [5, 4, 3, 2, 1]])
    if name == "autoregressive":
        # Token 1 ends a caption; what follows does not count.
        counts = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
        y = net.guess_next(tokens, pictures)
        losses = cross_entropy(y.transpose(1, 2), tokens, reduction="none")
        loss = (losses * counts).sum() / counts.sum()
    else:
        x_t = torch.tensor(Rng(1).normals((BATCH, BITS, LENGTH)))
        x_pred = torch.tensor(Rng(2).normals((BATCH, BITS, LENGTH))).clip(-1, 1)
        x_0 = torch.tensor(Rng(3).normals((BATCH, BITS, LENGTH))).sign()
        y = net.denoise(x_t, x_pred, torch.tensor([0.3, 0.9], dtype=torch.float64), pictures)
        logits = y
        if name != "linear":
            table = torch.tensor(int2bit(torch.arange(K).numpy(), BITS) * 2.0 - 1)
            y = torch.einsum("bkl,kn->bnl", y.softmax(1), table)
        loss = cross_entropy(logits, tokens) if name == "cross-entropy" else (y - x_0).square().mean()
    loss.backward()
    flat = lambda tensor: [float(f"{v:.7g}") for v in tensor.detach().reshape(-1).tolist()]
    return {
        "name": name,
        "n_parameters": sum(p.numel() for p in net.parameters()),
        "output": flat(y),
        "loss": float(loss.detach()),
        # For each parameter: the sum of its gradient, and of its absolute value.
        "gradients": [[float(f"{p.grad.sum():.7g}"), float(f"{p.grad.abs().sum():.7g}")] for p in net.parameters()],
    }


def main():
    cases = [case(name) for name in ["linear", "softmax", "cross-entropy", "autoregressive"]]
    text = json.dumps(cases, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n"
    pathlib.Path(__file__).with_name("captioner.json").write_text(text)


if __name__ == "__main__":
    main()
