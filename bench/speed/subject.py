"""What the contenders of `bench/speed.sh` share: seeds, shapes of states, the loop of DDIM, and the answering of questions.

Everything random descends from the seeds of core/examples/speed.rs, by the generator of the golden tests.
"""

import json
import math
import os
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "core/tests/golden"))
from reference import Rng, gamma_paper  # noqa: E402

# As many as the driver says.
THREADS = int(os.environ["OMP_NUM_THREADS"])
# Initial noise, pictures to caption, what is learned from.
NOISE, PICTURES, LESSON = 1, 2, 3


def symbols(n, limit):
    """Whole numbers below a limit."""
    rng = Rng(LESSON)
    return np.array([int(rng.uniform() * limit) for _ in range(n)])


def answer_questions(kind):
    """Reads one question a line; `load` makes the subject of all others."""
    subject = None
    for line in sys.stdin:
        [(name, given)] = json.loads(line).items()
        if name == "load":
            subject, answer = kind(**given), {}
        else:
            answer = getattr(subject, name)(**given)
        print(json.dumps(answer), flush=True)


class Subject:
    """What both kinds of network share: shapes, noise, and the loop of DDIM."""

    def __init__(self, config):
        self.config, self.noise = config["network"], {}
        self.is_captioner = "eye" in self.config
        if self.is_captioner:
            self.words = len(self.config["vocabulary"]["Words"]["words"]) + 2 + self.config["vocabulary"]["Words"]["others"]
            self.bits = (self.words - 1).bit_length()
            self.shape = (self.bits, self.config["length"])
            self.size = self.config["eye"]["Convolutions"]["size"]
        else:
            self.bits = (self.config["alphabet"] - 1).bit_length()
            self.size = self.config["size"]
            self.shape = (self.config["channels"] * self.bits, self.size, self.size)

    def of(self, seed, shape):
        if (seed, shape) not in self.noise:
            self.noise[seed, shape] = Rng(seed).normals(shape).astype(np.float32)
        return self.noise[seed, shape]

    def chain(self, batch, n_steps, only, self_cond, repeat, out):
        x_T = self.of(NOISE, (batch, *self.shape))
        pictures = self.of(PICTURES, (batch, 3, self.size, self.size)) if self.is_captioner else None
        seconds = 0
        for _ in range(repeat):
            start = time.perf_counter()
            condition = self.look(batch, pictures)
            if only is not None:
                start = time.perf_counter()
            x_pred = self.ddim(x_T, condition, n_steps, only or n_steps, self_cond == "Previous")
            seconds += time.perf_counter() - start
        if out:
            np.asarray(x_pred, dtype=np.float32).tofile(out)
        return {"seconds": seconds / repeat}

    @staticmethod
    def times(n_steps, only):
        """The noise level of each step, and the coefficients of the state and of the estimate in the next state."""
        for step in range(only):
            now, after = (float(gamma_paper(1 - (step + more) / n_steps)) for more in (0, 1))
            keep = math.sqrt((1 - after) / (1 - now))
            yield now, keep, math.sqrt(after) - math.sqrt(now) * keep
