"""A contender of `bench/speed.sh`: the same networks in PyTorch, eager.

The networks are the twins that the golden tests are made with. What PyTorch has a fast function for, it is given: fused attention, one fused Adam,
norms and averages of all parameters at once.
"""

import math
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn.functional import scaled_dot_product_attention

from subject import NOISE, PICTURES, THREADS, Rng, Subject, answer_questions, gamma_paper, symbols

import captioner_twin  # noqa: E402
import unet_twin  # noqa: E402


def attend_to_pixels(self, x):
    b, c, h, w = x.shape
    q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(3, 4).unbind(1)
    mixed = scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, h, w)
    return (x + self.out(mixed)) / math.sqrt(2)


def attend_to_tokens(self, x, seen, mask=None):
    heads = lambda y: y.unflatten(2, (captioner_twin.HEADS, -1)).transpose(1, 2)
    # Of pictures, keys and values are there already.
    keys, values = seen if seen.dim() == 4 else (self.key(seen), self.value(seen))
    mixed = scaled_dot_product_attention(heads(self.query(x)), heads(keys), heads(values))
    return self.output(mixed.transpose(1, 2).flatten(2))


def linear(self, x):
    return torch.nn.functional.linear(x, self.weight.T, self.bias)


unet_twin.Attention.forward = attend_to_pixels
captioner_twin.Attention.forward = attend_to_tokens
unet_twin.Dense.forward = linear


class Torch(Subject):
    def __init__(self, model, config, parameters, onnx):
        super().__init__(config)
        self.train_config = config
        self.net = self.network()
        weights = load_file(model)
        self.fill(self.net, [weights[f"ema.{name}"] for name, _ in parameters])
        self.parameters, self.onnx = parameters, onnx

    def network(self):
        c = self.config
        if self.is_captioner:
            twin = captioner_twin
            twin.SIZE, twin.WIDTHS = self.size, c["eye"]["Convolutions"]["widths"]
            twin.WIDTH, twin.HEADS, twin.LAYERS = c["width"], c["n_heads"], c["n_layers"]
            twin.LENGTH, twin.K, twin.BITS = c["length"], self.words, self.bits
            net = twin.Captioner("bits", self.bits)
            # The twin works out positions in double precision.
            net.eye.register_forward_hook(lambda module, given, out: out.float())
        else:
            bits = self.shape[0]
            net = unet_twin.UNet(self.size, bits, bits, c["width"], c["multipliers"], c["n_blocks"], c["attention_sizes"], c["head_dim"], c["n_classes"], 3)
        net.time.first.register_forward_pre_hook(lambda module, given: (given[0].float(),))
        return net

    @staticmethod
    def fill(net, values):
        with torch.no_grad():
            for parameter, value in zip(net.parameters(), values, strict=True):
                parameter.copy_(value.reshape(parameter.shape))

    def labels(self, batch):
        classes = self.config.get("n_classes", 0)
        return torch.eye(classes)[torch.arange(batch) % classes] if classes else torch.zeros(batch, 0)

    @torch.inference_mode()
    def look(self, batch, pictures):
        return self.keys_and_values(self.net, pictures) if self.is_captioner else self.labels(batch)

    @staticmethod
    def keys_and_values(net, pictures):
        """What each layer sees of pictures, `[layers, 2, b, n, width]`: the same at every step, and for all that a training step asks."""
        tokens = net.eye(torch.as_tensor(pictures))
        return torch.stack([make(tokens) for layer in net.layers for make in (layer.to_picture.key, layer.to_picture.value)]).unflatten(0, (-1, 2))

    @staticmethod
    def run(net, x_t, x_pred, gamma, condition):
        if not hasattr(net, "eye"):
            return net(x_t, x_pred, gamma, condition)
        x = net.bits(torch.cat([x_t, x_pred], 1).transpose(1, 2)) + net.positions.rows + net.time(gamma)[:, None]
        for layer, seen in zip(net.layers, condition):
            x = layer(x, seen)
        return net.output(net.norm(x)).transpose(1, 2)

    @torch.inference_mode()
    def ddim(self, x_T, condition, n_steps, only, sees_last):
        x_t = torch.from_numpy(x_T)
        x_pred = zeros = torch.zeros_like(x_t)
        for gamma, keep, add in self.times(n_steps, only):
            gamma = torch.full((len(x_t),), gamma, dtype=torch.float64)
            x_pred = self.run(self.net, x_t, x_pred if sees_last else zeros, gamma, condition).clamp_(-1, 1)
            x_t = torch.add(x_t * keep, x_pred, alpha=add)
        return x_pred

    def export(self, batch, path):
        class Step(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, x_t, x_pred, gamma, condition):
                return Torch.run(self.net, x_t, x_pred, gamma, condition)

        x_t = torch.from_numpy(self.of(NOISE, (batch, *self.shape)))
        pictures = self.of(PICTURES, (batch, 3, self.size, self.size)) if self.is_captioner else None
        condition = self.look(batch, pictures).clone()
        names = ["x_t", "x_pred", "gamma", "condition"]
        given = (x_t, x_t, torch.full((batch,), 0.5, dtype=torch.float64), condition)
        torch.onnx.export(Step(self.net), given, path, input_names=names, output_names=["y"], dynamo=False)
        np.save(f"{path}.condition.npy", condition.numpy())
        return {}

    def begin(self, batch, self_cond_share, out):
        self.student = self.network()
        weights = load_file(out)
        self.fill(self.student, [weights[f"weights.{name}"] for name, _ in self.parameters])
        self.ema = [parameter.detach().clone() for parameter in self.student.parameters()]
        self.adam = torch.optim.Adam(self.student.parameters(), betas=(0.9, 0.999), eps=1e-8, fused=True)
        self.n_steps, self.share = 0, self_cond_share
        if self.is_captioner:
            words = torch.from_numpy(symbols(batch * self.config["length"], self.words).reshape(batch, -1))
            self.lesson = words[:, None], torch.from_numpy(self.of(PICTURES, (batch, 3, self.size, self.size)))
        else:
            n = self.config["channels"]
            pixels = symbols(batch * n * self.size**2, self.config["alphabet"]).reshape(batch, n, self.size, self.size)
            self.lesson = torch.from_numpy(pixels), None
        return {}

    def draw(self, shape, exact):
        """Times, how many see an estimate, and noise: as the engine draws them, or as PyTorch does."""
        batch = shape[0]
        if not exact:
            return torch.rand(batch).numpy(), batch * self.share, torch.randn(shape)
        rng = Rng(self.train_config["seed"]).fork(self.n_steps + 1).fork(0)
        if self.is_captioner or self.config["n_classes"]:
            [rng.uniform() for _ in range(batch)]
        t = np.array([rng.uniform() for _ in range(batch)])
        n = math.floor(self.share * batch + rng.uniform())
        return t, n, torch.from_numpy(rng.normals(shape)).float()

    def train(self, repeat, exact=False):
        start = time.perf_counter()
        for _ in range(repeat):
            loss, norm = self.learn(exact)
        return {"seconds": (time.perf_counter() - start) / repeat, "loss": loss, "gradient_norm": norm}

    def learn(self, exact):
        net, (found, pictures) = self.student, self.lesson
        # Analog bits, lowest first; [b, c, …] → [b, c·n, …].
        x_0 = ((found[:, :, None] >> torch.arange(self.bits).reshape(-1, *[1] * (found.dim() - 2))) & 1).flatten(1, 2).float() * 2 - 1
        t, n, eps = self.draw(tuple(x_0.shape), exact)
        gamma = torch.from_numpy(gamma_paper(t.astype(np.float64)))
        by_example = gamma.reshape(-1, *[1] * (x_0.dim() - 1)).float()
        x_t = by_example.sqrt() * x_0 + (1 - gamma).sqrt().float().reshape(by_example.shape) * eps
        condition = self.keys_and_values(net, pictures) if self.is_captioner else self.labels(len(x_0))
        x_pred, n = torch.zeros_like(x_t), int(n)
        if n:
            with torch.no_grad():
                seen = condition[:, :, :n] if self.is_captioner else condition[:n]
                x_pred[:n] = self.run(net, x_t[:n], x_pred[:n], gamma[:n], seen).clamp_(-1, 1)
        loss = (self.run(net, x_t, x_pred, gamma, condition) - x_0).square().mean()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        rise = (self.n_steps + 1) / self.train_config["n_warmup_steps"]
        self.adam.param_groups[0]["lr"] = self.train_config["learning_rate"] * min(1, rise)
        self.adam.step()
        decay = min(self.train_config["ema_decay"], (1 + self.n_steps) / (10 + self.n_steps))
        with torch.no_grad():
            torch._foreach_lerp_(self.ema, list(net.parameters()), 1 - decay)
        self.n_steps += 1
        return float(loss.detach()), float(norm)


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    answer_questions(Torch)
