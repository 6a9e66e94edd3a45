"""Asks the engine and onnxruntime-web in turns how long the same work takes in a page; `bench/browser.sh` starts it.

Each has a page of its own in a browser of its own, which sleeps while the other answers. Rounds, ratios and what has to agree first are those of driver.py.
"""

import argparse
import pathlib
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from driver import ASSETS, HERE, TURN, Contender, Table, agree
from subject import NOISE, Subject

# Each with the batches of single steps, and that of a chain.
MODELS = {
    "shapes-uint8": {"step": (1, 4), "chain": 1},
    "cifar10-small": {"step": (1, 4), "chain": 1},
    "shapes-captions": {"step": (1, 16), "chain": 4},
}
DEVICES = {"cpu": "WebAssembly", "webgpu": "WebGPU"}
# Those beside ours: the module of their page, and what it loads. onnxruntime-web has two kinds of WebGPU, the newer one first; the last is the engine with burn's own
# kernels in place of ours.
OTHERS = {
    "cpu": {"onnxruntime-web": ("onnx", {"file": "ort.wasm"})},
    "webgpu": {
        "onnxruntime-web": ("onnx", {"file": "ort.webgpu"}),
        "JSEP": ("onnx", {"file": "ort.all"}),
        "burn": ("ours", {"stock": True}),
    },
}
# Seconds until a browser has compiled what is used often as well as it can.
WARM_UP = 4


def export(model, program, site):
    """Has the network written as ONNX for each batch, with what chains begin with."""
    ours = Contender("ours", [program])
    torch = Contender("torch", [sys.executable, HERE / "in_torch.py"])
    known = ours.ask("load", model=model)
    path = site / f"onnx/{model}.onnx"
    path.parent.mkdir(exist_ok=True)
    torch.ask("load", model=str(ASSETS / f"{model}.safetensors"), onnx=str(path), **known)
    subject = Subject(known["config"])
    for batch in {*MODELS[model]["step"], MODELS[model]["chain"]}:
        torch.ask("export", batch=batch, path=f"{path}.{batch}")
        to_single_precision(f"{path}.{batch}")
        np.load(f"{path}.{batch}.condition.npy").astype(np.float32).tofile(f"{path}.{batch}.condition.f32")
        subject.of(NOISE, (batch, *subject.shape)).tofile(f"{path}.{batch}.x_T.f32")
    ours.close()
    torch.close()


def to_single_precision(path):
    """The noise level and its angles are in double precision, which onnxruntime-web's WebGPU cannot do."""
    network = onnx.load(path)
    for constant in (attribute.t for node in network.graph.node for attribute in node.attribute):
        if constant.data_type == TensorProto.DOUBLE:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant).astype(np.float32)))
    for given in network.graph.input:
        given.type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(network, path)


def contest(model, device, table, n_chain):
    everyone = []
    for name, (module, given) in {"ours": ("ours", {}), **OTHERS[device]}.items():
        everyone.append(Contender(name, ["node", HERE / "in_page.js", module, device]))
        everyone[-1].ask("load", model=model, **given)

    def chain(contender, batch, n_steps, only=None, file=None):
        times = list(Subject.times(n_steps, only or n_steps))
        return lambda repeat: contender.ask(
            "chain", batch=batch, n_steps=n_steps, only=only, times=times, repeat=repeat, out=file and str(file)
        )["seconds"]

    batches = MODELS[model]

    def five_steps(contender):
        file = table.out / f"{model}.{device}.{contender.name}.f32"
        chain(contender, batches["chain"], 5, file=file)(1)
        return np.fromfile(file, dtype=np.float32)

    # Five steps, each on the result of the last: rounding grows a little from step to step. All are compared with what onnxruntime-web makes on the processor.
    module, given = OTHERS["cpu"]["onnxruntime-web"]
    reference = Contender("reference", ["node", HERE / "in_page.js", module, "cpu"])
    reference.ask("load", model=model, **given)
    expected = five_steps(reference)
    reference.close()
    for contender in everyone:
        # Sines on a graphics card are less exact than ours, which are worked out beforehand.
        limit = 2e-3 if contender.name in ("ours", "burn") or device == "cpu" else 2e-2
        agree(f"five steps on {DEVICES[device]}, {contender.name} and onnxruntime-web on the processor,", five_steps(contender), expected, limit)

    work = {f"one step, batch {batch}": (batch, 100, 1) for batch in batches["step"]}
    # A software adapter takes minutes for a chain.
    if device == "cpu":
        work[f"{n_chain} DDIM steps, batch {batches['chain']}"] = (batches["chain"], n_chain)
    for what, asked in work.items():
        asks = {contender.name: chain(contender, *asked) for contender in everyone}
        for ask in asks.values():
            # Many steps a question, or the page would spend its time waiting for questions.
            end, repeat = time.monotonic() + WARM_UP, max(1, min(100, int(0.5 / ask(1))))
            while time.monotonic() < end:
                ask(repeat)
        table.compare(model, what, asks)
    for contender in everyone:
        contender.close()


def markdown(device, rows):
    """A table of bench/README.md."""
    told = lambda ms: f"{ms:.0f} ms" if ms >= 100 else f"{ms:.3g} ms"
    names = list(OTHERS[device])
    lines = [f"| {DEVICES[device]} | ours |" + "".join(f" {name} | ratio |" for name in names), "|---|---|" + "---|---|" * len(names)]
    for row in rows:
        cells = [f"{row['model']}, {row['work']}", told(row["ms"]["ours"])]
        for name in names:
            low, middle, high = row["ratio"][name]
            cells += [told(row["ms"][name]), f"**{middle:.2f}** ({low:.2f}–{high:.2f})"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="core's example `speed`")
    parser.add_argument("site", type=pathlib.Path, help="the folder that pages come from")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--chain", type=int, default=20, help="steps of the whole chain")
    parser.add_argument("--turn", type=float, default=TURN, help="seconds that an answer should take at least")
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--device", choices=DEVICES)
    given = parser.parse_args()
    models = [given.model] if given.model else MODELS
    for model in models:
        export(model, given.program, given.site)
    table, told = Table(given.out, given.rounds, given.turn), ""
    for device in [given.device] if given.device else DEVICES:
        first = len(table.rows)
        for model in models:
            contest(model, device, table, given.chain)
        told += markdown(device, table.rows[first:]) + "\n"
    (given.out / "speed.md").write_text(told)


if __name__ == "__main__":
    main()
