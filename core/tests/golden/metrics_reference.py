"""Fréchet and kernel distances by NumPy and SciPy, to check the Rust ones.

    python3 -m pip install numpy==2.4.6 scipy==1.17.1
    python3 core/tests/golden/metrics_reference.py

writes `metrics.json` beside this file. The formulas are those of Heusel et al. 2017 (with SciPy's root of the product, which the Rust
code does not form) and of Bińkowski et al. 2018 (as double sums over pairs), all in float64.
"""

import json
import pathlib

import numpy as np
from scipy.linalg import sqrtm


def frechet(x, y):
    a, b = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    offset = np.square(x.mean(0) - y.mean(0)).sum()
    return float(offset + np.trace(a) + np.trace(b) - 2 * np.trace(sqrtm(a @ b)).real)


def kernel(a, b):
    return (float(np.dot(a, b)) / len(a) + 1) ** 3


def kid(x, y):
    m = len(x)
    within = lambda z: sum(kernel(z[i], z[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    between = sum(kernel(a, b) for a in x for b in y) / m**2
    return within(x) + within(y) - 2 * between


def case(rng, name, n, dim):
    # Correlated, of different means and spreads; rounded, so that few digits say exactly what was used.
    x = (rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))).round(3)
    y = (rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) * 0.7 + 0.5).round(3)
    x, y = x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)
    flat = lambda z: [float(f"{v:.6g}") for v in z.reshape(-1)]
    return {"name": name, "dim": dim, "left": flat(x), "right": flat(y), "frechet": frechet(x, y), "kid": kid(x, y)}


def main():
    rng = np.random.default_rng(1)
    cases = [case(rng, "full rank", 24, 6), case(rng, "fewer samples than dimensions", 5, 8)]
    text = json.dumps(cases, separators=(",", ":")).replace('{"name"', '\n{"name"')
    pathlib.Path(__file__).with_name("metrics.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
