"""Asks the engine, PyTorch and onnxruntime in turns how long the same work takes; `bench/speed.sh` starts it.

Every round asks each contender once, in changing order; a ratio is of two answers of the same round, and what is told is the median over the rounds with
the middle half. A ratio above 1 means that the engine is faster. Before anything is timed, results have to agree.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).parent
ASSETS = HERE.parents[1] / "assets/models"
# Each with the batches of single steps, of a whole chain, and of training: those that the studio and the presets use.
MODELS = {
    "shapes-uint8": {"step": (1, 16), "chain": 4, "train": 32},
    "cifar10-small": {"step": (1, 16), "chain": 4, "train": 16},
    "shapes-captions": {"step": (1, 16), "chain": 16, "train": 64},
}
# Seconds that one answer should take at least, so that clocks and warm-up matter little.
TURN = 0.2


class Contender:
    """A program that answers questions."""

    threads = 2
    is_alone = False

    def __init__(self, name, command):
        self.name = name
        environment = os.environ | {"RAYON_NUM_THREADS": str(Contender.threads), "OMP_NUM_THREADS": str(Contender.threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, question, **given):
        self.schedule(os.SCHED_RR, 1)
        self.process.stdin.write(json.dumps({question: given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        self.schedule(os.SCHED_OTHER, 0)
        if not line:
            sys.exit(f"{self.name} died of {question} {given}")
        return json.loads(line)

    def schedule(self, policy, priority):
        """Before everything else that runs on the machine, or among it, if that was asked for."""
        if Contender.is_alone:
            for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
                # A thread may have ended meanwhile.
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))

    def memory(self, field):
        """VmRSS or VmHWM, in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def quartiles(values):
    values = sorted(values)
    return [float(np.quantile(values, q)) for q in (0.25, 0.5, 0.75)]


class Table:
    """All answers so far, for the screen and for a file."""

    def __init__(self, out, rounds, turn):
        self.out, self.rounds, self.turn, self.rows = out, rounds, turn, []

    def compare(self, model, work, asks):
        """Asks `{name: function of repeat → seconds}` in turns; the first is what all others are divided by."""
        names = list(asks)
        first = {name: min(asks[name](1) for _ in range(2)) for name in names}
        repeat = {name: max(1, min(1000, math.ceil(self.turn / first[name]))) for name in names}
        answers = {name: [] for name in names}
        for turn in range(self.rounds):
            for i in range(len(names)):
                name = names[(turn + i) % len(names)]
                # Threads of the one before may still be spinning.
                time.sleep(0.02)
                answers[name].append(asks[name](repeat[name]))
        row = {"model": model, "work": work, "ms": {name: 1000 * statistics.median(answers[name]) for name in names}}
        row["ratio"] = {name: quartiles([b / a for a, b in zip(answers[names[0]], answers[name])]) for name in names[1:]}
        self.rows.append(row)
        told = "   ".join(f"{name} {row['ms'][name]:9.2f} ms" for name in names)
        ratios = "   ".join(f"×{q[1]:.2f} ({q[0]:.2f}–{q[2]:.2f})" for q in row["ratio"].values())
        print(f"{model:16} {work:34} {told}   {ratios}", flush=True)
        (self.out / "speed.json").write_text(json.dumps(self.rows, indent=1))
        return row


def markdown(rows):
    """The table of bench/README.md."""
    told = lambda ms: f"{ms:.0f} ms" if ms >= 100 else f"{ms:.3g} ms"
    lines = ["| | ours | PyTorch | ratio | onnxruntime | ratio |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "torch" not in row.get("ratio", {}):
            continue
        cells = [f"{row['model']}, {row['work']}", told(row["ms"]["ours"])]
        for name in ("torch", "onnx"):
            if name in row["ratio"]:
                low, middle, high = row["ratio"][name]
                cells += [told(row["ms"][name]), f"**{middle:.2f}** ({low:.2f}–{high:.2f})"]
            else:
                cells += ["–", "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def agree(what, found, expected, limit):
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    difference = float(np.abs(found - expected).max() / max(1e-30, np.abs(expected).max()))
    print(f"{'':16} {what} agree to {difference:.1e}", flush=True)
    if not difference <= limit:
        sys.exit(f"{what} differ by {difference:.1e}, more than {limit:.0e}")


def contest(model, program, table, n_chain):
    out = table.out
    ours = Contender("ours", [program])
    torch = Contender("torch", [sys.executable, HERE / "in_torch.py"])
    onnx = Contender("onnx", [sys.executable, HERE / "in_onnx.py"])
    everyone = [ours, torch, onnx]
    known = ours.ask("load", model=model)
    given = {"model": str(ASSETS / f"{model}.safetensors"), "onnx": str(out / f"{model}.onnx"), **known}
    torch.ask("load", **given)
    onnx.ask("load", **given)
    batches = MODELS[model]

    def chain(contender, batch, n_steps, only=None, self_cond="Previous", file=None):
        return lambda repeat: contender.ask(
            "chain", batch=batch, n_steps=n_steps, only=only, self_cond=self_cond, repeat=repeat, out=file and str(file)
        )["seconds"]

    for batch in {*batches["step"], batches["chain"]}:
        torch.ask("export", batch=batch, path=f"{given['onnx']}.{batch}")
    results = []
    for contender in everyone:
        file = out / f"{model}.{contender.name}.f32"
        chain(contender, batches["chain"], 5, file=file)(1)
        results.append(np.fromfile(file, dtype=np.float32))
    # Five steps, each on the result of the last: rounding grows a little from step to step.
    for contender, result in zip(everyone[1:], results[1:]):
        agree(f"five steps, ours and {contender.name},", results[0], result, 2e-3)

    idle = {contender.name: contender.memory("VmRSS") for contender in everyone}
    for batch in batches["step"]:
        asks = {contender.name: chain(contender, batch, 100, only=1) for contender in everyone}
        table.compare(model, f"one step, batch {batch}", asks)
    batch = batches["chain"]
    table.compare(model, f"{n_chain} DDIM steps, batch {batch}", {c.name: chain(c, batch, n_chain) for c in everyone})
    peaks = {contender.name: contender.memory("VmHWM") for contender in everyone}

    weights = str(out / f"{model}.begin.safetensors")
    batch = batches["train"]
    ours.ask("begin", batch=batch, self_cond_share=0.5, out=weights)
    torch.ask("begin", batch=batch, self_cond_share=0.5, out=weights)
    for step in range(3):
        ours_said, torch_said = ours.ask("train", repeat=1), torch.ask("train", repeat=1, exact=True)
        # The third step has gone through Adam twice, which divides small gradients by small numbers.
        agree(f"loss of step {step + 1}", ours_said["loss"], torch_said["loss"], 1e-4)
        agree(f"length of the gradient of step {step + 1}", ours_said["gradient_norm"], torch_said["gradient_norm"], 1e-2)
    asks = {c.name: lambda repeat, c=c: c.ask("train", repeat=repeat)["seconds"] for c in (ours, torch)}
    table.compare(model, f"one training step, batch {batch}", asks)
    trained = {contender.name: contender.memory("VmHWM") for contender in (ours, torch)}
    memory = {name: [idle[name], peaks[name], trained.get(name)] for name in idle}
    table.rows.append({"model": model, "memory_mb": memory})
    for name, numbers in memory.items():
        told = ["idle", "sampling", "training"]
        print(f"{model:16} memory, {name:6}", "  ".join(f"{t} {n:5.0f} MB" for t, n in zip(told, numbers) if n), flush=True)
    for contender in everyone:
        contender.close()


def self_conditioning(model, program, table, n_chain):
    """What self-conditioning costs, and what a chain costs beyond its steps: ours against ours."""
    ours = Contender("ours", [program])
    ours.ask("load", model=model)
    batch = MODELS[model]["chain"]

    def chain(n_steps, only, self_cond):
        return lambda repeat: ours.ask(
            "chain", batch=batch, n_steps=n_steps, only=only, self_cond=self_cond, repeat=repeat, out=None
        )["seconds"]

    table.compare(model, "a step, self-conditioned / not", {"not": chain(100, 20, "Off"), "self-cond": chain(100, 20, "Previous")})
    table.compare(model, f"{n_chain} steps / {n_chain} × one step", {
        "a step": lambda repeat: n_chain * chain(n_chain, 1, "Previous")(20 * repeat),
        "chain": chain(n_chain, None, "Previous"),
    })
    students = {}
    for name, share in {"not": 0.0, "self-cond": 0.5}.items():
        students[name] = Contender(name, [program])
        students[name].ask("load", model=model)
        students[name].ask("begin", batch=MODELS[model]["train"], self_cond_share=share, out=None)
    asks = {name: lambda repeat, s=student: s.ask("train", repeat=repeat)["seconds"] for name, student in students.items()}
    table.compare(model, "training, self-conditioned / not", asks)
    for contender in [ours, *students.values()]:
        contender.close()


def growth(program, table):
    """Cost against one number at a time, with the exponent of the power that fits."""
    ours = Contender("ours", [program])
    configs = {}
    for model in ("shapes-uint8", "shapes-captions"):
        configs[model] = ours.ask("load", model=model)["config"]["network"]
    pictures, captions = configs["shapes-uint8"], configs["shapes-captions"]

    def measure(name, values, config_of, batch_of=lambda v: 4, steps_of=lambda v: 1, training=False):
        seconds = []
        for value in values:
            kind, config = config_of(value)
            ours.ask("make", kind=kind, config=config)
            if training:
                ours.ask("begin", batch=batch_of(value), self_cond_share=0.5, out=None)
                ask = lambda repeat: ours.ask("train", repeat=repeat)["seconds"]
            else:
                n_steps = steps_of(value)
                ask = lambda repeat: ours.ask(
                    "chain", batch=batch_of(value), n_steps=n_steps, only=None, self_cond="Previous", repeat=repeat, out=None
                )["seconds"]
            repeat = max(1, math.ceil(table.turn / min(ask(1), ask(1))))
            seconds.append(statistics.median(ask(repeat) for _ in range(5)))
        exponent = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        last = math.log(seconds[-1] / seconds[-2]) / math.log(values[-1] / values[-2])
        table.rows.append({"growth": name, "values": values, "ms": [1000 * s for s in seconds], "exponent": exponent, "last": last})
        told = "  ".join(f"{v}: {1000 * s:.2f} ms" for v, s in zip(values, seconds))
        print(f"growth with {name:34} ^{exponent:.2f} (last ^{last:.2f})   {told}", flush=True)

    unet = lambda **changed: ("Pictures", pictures | changed)
    captioner = lambda **changed: ("Captions", captions | changed)
    measure("batch, U-Net", [1, 2, 4, 8, 16, 32], lambda v: unet(), batch_of=lambda v: v)
    measure("batch, U-Net in training", [2, 4, 8, 16, 32], lambda v: unet(), batch_of=lambda v: v, training=True)
    measure("steps, U-Net", [5, 10, 20, 40], lambda v: unet(), steps_of=lambda v: v)
    measure("width, U-Net", [16, 32, 64, 128], lambda v: unet(width=v))
    measure("side of the picture, U-Net", [8, 16, 32, 64], lambda v: unet(size=v, attention_sizes=[]))
    measure("side, with attention at half of it", [8, 16, 32, 64], lambda v: unet(size=v, attention_sizes=[v // 2]))
    measure("batch, captioner", [1, 4, 16, 64], lambda v: captioner(), batch_of=lambda v: v)
    measure("tokens, captioner", [16, 32, 64, 128, 256], lambda v: captioner(length=v))
    measure("width, captioner", [64, 128, 256, 512], lambda v: captioner(width=v))
    for n_steps in (25, 100):
        kept = ours.ask("keep", batch=16, n_steps=n_steps)
        table.rows.append({"kept": n_steps, **kept})
        print(f"a kept chain of {n_steps} steps × 16 pictures: {kept['used'] / 2**20:.1f} MB by our count, {kept['resident'] / 2**20:.1f} MB by the system's")
    ours.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="core's example `speed`")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--chain", type=int, default=100, help="steps of the whole chain")
    parser.add_argument("--turn", type=float, default=TURN, help="seconds that an answer should take at least")
    parser.add_argument("--only", choices=["contest", "self-conditioning", "growth"])
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--threads", type=int, default=2, help="of each contender; 1 suffers least from a busy machine")
    parser.add_argument("--alone", action="store_true", help="let each go before all else while it answers; Linux, as root")
    given = parser.parse_args()
    Contender.is_alone = given.alone
    Contender.threads = given.threads
    given.out.mkdir(parents=True, exist_ok=True)
    table = Table(given.out, given.rounds, given.turn)
    for model in [given.model] if given.model else MODELS:
        if given.only in (None, "contest"):
            contest(model, given.program, table, given.chain)
        if given.only in (None, "self-conditioning"):
            self_conditioning(model, given.program, table, given.chain)
    if given.only in (None, "growth"):
        growth(given.program, table)
    (given.out / "speed.json").write_text(json.dumps(table.rows, indent=1))
    (given.out / "speed.md").write_text(markdown(table.rows))


if __name__ == "__main__":
    main()
