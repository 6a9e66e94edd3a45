"""An independent NumPy reference for Bit Diffusion, written from the paper's pseudo-code, all in float64.

    python3 -m pip install numpy==2.2.6
    python3 core/tests/golden/reference.py

writes `golden.json` beside this file. `core/tests/golden.rs` compares the Rust engine with it. Nothing here is translated from
the Rust code: samplers are the formulas of Algorithms 2 and 4 to 6, DPM-Solver the formulas of Lu et al. 2022 for data prediction.
"""

import json
import math
import pathlib

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


# --- The random generator (SplitMix64, Box-Muller) -------------------------------------------------------------------


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Rng:
    def __init__(self, seed):
        self.state = mix(seed)

    def fork(self, label):
        other = Rng(0)
        other.state = mix(self.state ^ mix((label + GOLDEN) & MASK))
        return other

    def uniform(self):
        self.state = (self.state + GOLDEN) & MASK
        return ((mix(self.state) >> 12) + 0.5) / 2**52

    def normals(self, shape):
        n = int(np.prod(shape))
        out = []
        while len(out) < n:
            radius = math.sqrt(-2 * math.log(self.uniform()))
            angle = 2 * math.pi * self.uniform()
            out += [radius * math.cos(angle), radius * math.sin(angle)]
        return np.array(out[:n]).astype(np.float32).astype(np.float64).reshape(shape)


# --- Encodings (Algorithm 3, appendices B and C) ---------------------------------------------------------------------


def int2bit(x, n):
    return (np.right_shift(np.asarray(x)[..., None], np.arange(n))) % 2


def shuffled(k):
    np.random.seed(42)
    codes = np.arange(k)
    np.random.shuffle(codes)
    return codes


def codes(encoding, k):
    values = np.arange(k)
    if encoding == "Uint8":
        return values
    if encoding == "Gray":
        return values ^ (values >> 1)
    return shuffled(k)


def hamming(codes):
    k = len(codes)
    distance = int2bit(codes[:, None] ^ codes[None, :], 20).sum(-1)
    difference = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :])
    means = [float(distance[difference == d].mean()) for d in range(1, k)]
    upper = np.triu_indices(k, 1)
    return means, float(np.corrcoef(difference[upper], distance[upper])[0, 1])


# --- Schedules -------------------------------------------------------------------------------------------------------


def gamma_paper(t, ns=0.0002, ds=0.00025):
    return np.cos(((t + ns) / (1 + ds)) * np.pi / 2) ** 2


def with_margin(curve):
    return lambda t: 1e-9 + (1 - 2e-9) * (curve(t) - curve(1.0)) / (curve(0.0) - curve(1.0))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


SCHEDULES = {
    "Cosine": gamma_paper,
    "CosineRange": with_margin(lambda t: np.cos((t * 0.8 + 0.2) * np.pi / 2) ** 2),
    "Sigmoid": with_margin(lambda t: 1 - sigmoid(t * 6 - 3)),
    "Linear": with_margin(lambda t: 1 - t),
}


# --- The exact denoiser of a finite data set -------------------------------------------------------------------------


class Exact:
    """E[x_0 | x_t], with the self-conditioning input as a second look at the data of precision `trust`."""

    def __init__(self, points, classes, trust):
        self.points, self.classes, self.trust = points, classes, trust

    def __call__(self, x_t, x_pred, gamma, asked=None):
        out = np.zeros_like(x_t)
        for row in range(len(x_t)):
            scores = []
            for point, klass in zip(self.points, self.classes):
                score = -np.sum((x_t[row] - np.sqrt(gamma) * point) ** 2) / (2 * (1 - gamma))
                score -= self.trust * np.sum((x_pred[row] - point) ** 2) / 2
                if asked is not None and asked[row] is not None and asked[row] != klass:
                    score = -np.inf
                scores.append(score)
            weights = np.exp(np.array(scores) - max(scores))
            out[row] = (weights / weights.sum()) @ self.points
        return out


# --- Steps (Algorithm 4; Lu et al. 2022) -----------------------------------------------------------------------------


def ddim_step(x_t, x_pred, t_now, t_next, gamma):
    gamma_now, gamma_next = gamma(t_now), gamma(t_next)
    eps = 1 / np.sqrt(1 - gamma_now) * (x_t - np.sqrt(gamma_now) * x_pred)
    return np.sqrt(gamma_next) * x_pred + np.sqrt(1 - gamma_next) * eps


def ddpm_step(x_t, x_pred, t_now, t_next, gamma, z):
    gamma_now = gamma(t_now)
    alpha_now = gamma(t_now) / gamma(t_next)
    sigma_now = np.sqrt(1 - alpha_now)
    eps = 1 / np.sqrt(1 - gamma_now) * (x_t - np.sqrt(gamma_now) * x_pred)
    return 1 / np.sqrt(alpha_now) * (x_t - (1 - alpha_now) / np.sqrt(1 - gamma_now) * eps) + sigma_now * z


def log_snr(gamma, t):
    return 0.5 * np.log(gamma(t) / (1 - gamma(t)))


def time_of(gamma, target):
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        if log_snr(gamma, middle) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def alpha_sigma(gamma, t):
    return np.sqrt(gamma(t)), np.sqrt(1 - gamma(t))


def dpm_step(order, x, net, t_now, t_next, gamma, previous):
    """One DPM-Solver step with data prediction; `net(x, t)` estimates x_0; `previous` is (t, estimate) or None.

    Returns the new state and the (t, estimate) of the last evaluation."""
    a_t, s_t = alpha_sigma(gamma, t_next)
    _, s_s = alpha_sigma(gamma, t_now)
    l_s, l_t = log_snr(gamma, t_now), log_snr(gamma, t_next)
    h = l_t - l_s
    m_s = net(x, t_now)
    first_order = s_t / s_s * x - a_t * np.expm1(-h) * m_s
    if order == "1":
        return first_order, (t_now, m_s)
    if order == "2":
        t_1 = time_of(gamma, l_s + 0.5 * h)
        a_1, s_1 = alpha_sigma(gamma, t_1)
        x_1 = s_1 / s_s * x - a_1 * np.expm1(-0.5 * h) * m_s
        m_1 = net(x_1, t_1)
        return first_order - 1 / (2 * 0.5) * a_t * np.expm1(-h) * (m_1 - m_s), (t_1, m_1)
    if order == "3":
        r_1, r_2 = 1 / 3, 2 / 3
        t_1, t_2 = time_of(gamma, l_s + r_1 * h), time_of(gamma, l_s + r_2 * h)
        a_1, s_1 = alpha_sigma(gamma, t_1)
        a_2, s_2 = alpha_sigma(gamma, t_2)
        phi_22 = np.expm1(-r_2 * h) / (r_2 * h) + 1
        phi_2 = np.expm1(-h) / h + 1
        x_1 = s_1 / s_s * x - a_1 * np.expm1(-r_1 * h) * m_s
        m_1 = net(x_1, t_1)
        x_2 = s_2 / s_s * x - a_2 * np.expm1(-r_2 * h) * m_s + r_2 / r_1 * a_2 * phi_22 * (m_1 - m_s)
        m_2 = net(x_2, t_2)
        return first_order + 1 / r_2 * a_t * phi_2 * (m_2 - m_s), (t_2, m_2)
    assert order == "2M"
    if previous is None or previous[0] <= t_now:
        return first_order, (t_now, m_s)
    t_0, m_0 = previous
    r_0 = (l_s - log_snr(gamma, t_0)) / h
    return first_order - 0.5 * a_t * np.expm1(-h) * (1 / r_0) * (m_s - m_0), (t_now, m_s)


# --- Chains (Algorithms 2, 5 and 6) ----------------------------------------------------------------------------------


def generate(net, x_t, steps, td, sampler, strategy, parameter, seed, scale=1.0, asked=None, guidance=1.0, gamma=gamma_paper):
    memory = {"x_pred": np.zeros_like(x_t), "x_accu": np.zeros_like(x_t), "count": 0}
    clip = lambda x: np.clip(x, -scale, scale)

    def guided(x, x_pred, t):
        memory["count"] += 1
        with_class = net(x, x_pred, gamma(t), asked)
        if asked is None or guidance == 1.0:
            return with_class
        memory["count"] += 1
        return guidance * with_class + (1 - guidance) * net(x, x_pred, gamma(t), None)

    def estimate(x, t):
        if strategy == "Off":
            x_pred = guided(x, np.zeros_like(x), t)
        elif strategy == "Previous":
            x_pred = guided(x, memory["x_pred"], t)
        elif strategy == "Momentum":
            memory["x_accu"] = parameter * memory["x_accu"] + (1 - parameter) * memory["x_pred"]
            x_pred = guided(x, memory["x_accu"], t)
        else:
            uncond = guided(x, np.zeros_like(x), t)
            selfcond = guided(x, clip(uncond), t)
            x_pred = parameter * selfcond + (1.0 - parameter) * uncond
        memory["x_pred"] = clip(x_pred)
        return memory["x_pred"]

    previous, half = None, None
    for step in range(steps):
        t_now = 1 - step / steps
        t_next = max(1 - (step + 1 + td) / steps, 0)
        if sampler == "Ddim":
            x_t = ddim_step(x_t, estimate(x_t, t_now), t_now, t_next, gamma)
        elif sampler == "Ddpm":
            z = Rng(seed).fork(step + 1).normals(x_t.shape)
            x_t = ddpm_step(x_t, estimate(x_t, t_now), t_now, t_next, gamma, z)
        else:
            order = {"DpmSolver1": "1", "DpmSolver2": "2", "DpmSolver3": "3", "DpmSolverMultistep2": "2M"}[sampler]
            x_t, previous = dpm_step(order, x_t, estimate, t_now, t_next, gamma, previous)
        if step + 1 == steps // 2:
            half = x_t
    return {"x_half": half, "x_t": x_t, "x_pred": memory["x_pred"], "n_evaluations": memory["count"]}


# --- Writing it down -------------------------------------------------------------------------------------------------


def numbers(value):
    """Arrays as flat lists of 9 significant digits, enough for f32."""
    if isinstance(value, dict):
        return {key: numbers(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [float(f"{v:.9g}") for v in value.reshape(-1)]
    return value


def main():
    binary = ["Uint8", "Gray", "Uint8Rand"]
    bits = {}
    for encoding in binary:
        means, correlation = hamming(codes(encoding, 256))
        bits[encoding] = {
            "codes": codes(encoding, 256).tolist(),
            "bits": ["".join(map(str, row)) for row in int2bit(codes(encoding, 256), 8)],
            "hamming_means": [round(m, 9) for m in means],
            "hamming_correlation": correlation,
        }
    # One-hot by its definition, and continuous pixels in [-1, 1], as the paper's baseline has them.
    one_hot = {"hot": [int(np.argmax(row)) for row in np.eye(256)], "rows": [int(row.sum()) for row in np.eye(256)]}
    continuous = [float(v) for v in np.arange(256) / 255 * 2 - 1]
    permutations = {str(k): shuffled(k).tolist() for k in [2, 3, 10, 100, 300]}
    permutations["32000"] = shuffled(32000)[:16].tolist()

    grid = [i / 20 for i in range(21)]
    schedules = {name: [float(gamma(t)) for t in grid] for name, gamma in SCHEDULES.items()}

    # Six points of four symbols of two bits each, two classes; the points are kept apart so that chains are not chaotic.
    symbols = np.array([[0, 1, 2, 3], [3, 3, 0, 0], [1, 2, 1, 2], [2, 0, 3, 1], [0, 0, 1, 1], [3, 2, 2, 0]])
    points = (int2bit(symbols, 2) * 2.0 - 1).reshape(len(symbols), 8)
    classes = [0, 1, 0, 1, 0, 1]
    trust, seed, batch = 0.2, 7, 3
    net = Exact(points, classes, trust)
    noise = Rng(seed).fork(0).normals((batch, 8))

    steps_of = []
    x_t, x_pred = noise, np.clip(Rng(8).normals((batch, 8)), -1, 1)
    z = Rng(9).normals((batch, 8))
    still = lambda x, t: x_pred * np.cos(t)
    for name, gamma in SCHEDULES.items():
        for t_now, t_next in [(1.0, 0.9), (0.6, 0.1), (0.1, 0.0)]:
            t_before = t_now + 0.1
            before = (t_before, x_pred * np.cos(t_before)) if t_before <= 1 else None
            one = {
                "Ddim": ddim_step(x_t, still(x_t, t_now), t_now, t_next, gamma),
                "Ddpm": ddpm_step(x_t, still(x_t, t_now), t_now, t_next, gamma, z),
            }
            for sampler, order in [("DpmSolver1", "1"), ("DpmSolver2", "2"), ("DpmSolver3", "3"), ("DpmSolverMultistep2", "2M")]:
                one[sampler] = dpm_step(order, x_t, still, t_now, t_next, gamma, before)[0]
            steps_of.append({"schedule": name, "t_now": t_now, "t_next": t_next, "x_next": numbers(one)})

    n_steps = 8
    chains = []
    for sampler in ["Ddim", "Ddpm", "DpmSolver1", "DpmSolver2", "DpmSolver3", "DpmSolverMultistep2"]:
        for strategy, parameter in [("Off", 0), ("Previous", 0), ("Momentum", 0.5), ("SelfGuidance", 3.0)]:
            for td in [0, 0.5, 1, 3, n_steps]:
                result = generate(net, noise, n_steps, td, sampler, strategy, parameter, seed)
                settings = {"sampler": sampler, "self_cond": strategy, "parameter": parameter, "td": td, "guidance": 1.0}
                chains.append({**settings, "classes": None, **numbers(result)})
    for strategy, parameter in [("Previous", 0), ("SelfGuidance", 3.0)]:
        asked = [0, 1, None]
        result = generate(net, noise, n_steps, 0.5, "Ddim", strategy, parameter, seed, asked=asked, guidance=2.5)
        settings = {"sampler": "Ddim", "self_cond": strategy, "parameter": parameter, "td": 0.5, "guidance": 2.5}
        chains.append({**settings, "classes": asked, **numbers(result)})

    golden = {
        "bits": bits,
        "one_hot": one_hot,
        "continuous": continuous,
        "permutations": permutations,
        "grid": grid,
        "schedules": schedules,
        "noise": {"seed": seed, "values": numbers(noise), "plain": numbers(Rng(8).normals((batch, 8))), "z": numbers(z)},
        "data": {"symbols": symbols.reshape(-1).tolist(), "classes": classes, "trust": trust, "n_steps": n_steps, "batch": batch},
        "steps": steps_of,
        "chains": chains,
    }
    path = pathlib.Path(__file__).with_name("golden.json")
    text = json.dumps(golden, separators=(",", ":"))
    # One chain a line, so that a change can be read.
    path.write_text(text.replace('{"sampler"', '\n{"sampler"').replace('{"schedule"', '\n{"schedule"') + "\n")


if __name__ == "__main__":
    main()
