"""Where a step of an LSTM goes in `eigen` and `cblas`: the share of its gates, and how much of the machine's
peak the rest, its products, comes to."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import numpy as np
from figures import Figure

from timetrial.cases.case import Case, Workload
from timetrial.contenders import resolve
from timetrial.core import Backend, Input, Network
from timetrial.core.cpu import measure_peak_flops
from timetrial.library_files import find

PROGRAMS = Path(__file__).parents[2] / "build" / "editable" / "self"
SHAPES = ((128, 100, 16), (500, 50, 64))  # units, steps, batch
MOST_PERCENT, FEWEST_PERCENT = 15, 60
LARGE = 500  # units: below, products are too small for that much of the peak
STEPS = 12


def gates_figures() -> list[Figure]:
    """Per shape and backend. One thread, every sequence as long as the batch, so that all steps count."""
    figures: list[Figure] = []
    for shape in SHAPES:
        what = "LSTM of {} units, {} steps, batch {}".format(*shape)
        for name in ("eigen", "cblas"):
            isa, step_s, flops = _step(name, *shape)
            program = [str(PROGRAMS / f"gate_cost-{isa}"), *map(str, shape)]
            gates_s = float(subprocess.run(program, capture_output=True, text=True, check=True).stdout) / 1e3
            share = 100 * gates_s / step_s
            figures.append(Figure.at_most(f"{what}, {name}: gates, of a step", MOST_PERCENT, share, "%"))
            if shape[0] >= LARGE:
                reached = 100 * flops / (step_s - gates_s) / _peak()
                of_peak = f"{what}, {name}: products, of the machine's peak"
                figures.append(Figure.at_least(of_peak, FEWEST_PERCENT, reached, "%", digits=0))
    return figures


def _step(name: str, units: int, steps: int, batch: int) -> tuple[str | None, float, float]:
    """The variant of the backend, the fastest step's seconds, and operations of its products."""
    cell = {"units": units, "output": "all"}
    nodes = [
        {"name": "lstm", "kind": "lstm", "inputs": ["series"], "attributes": cell},
        {"name": "mean", "kind": "mean_over_time", "inputs": ["lstm"]},
        {"name": "last", "kind": "dense", "inputs": ["mean"], "attributes": {"units": 2}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["last", "labels"]},
    ]
    network = Network(nodes, batch, [Input("series", (steps, units)), Input("labels", (), "i64", "target")])
    contender = resolve(Case(name, Workload("lstm-bahrampour", "synthetic-sentences", batch, {})))
    backend = Backend(contender.path)
    backend.configure("threads", "1")
    if "blas.library" in contender.settings:
        backend.configure("blas.library", str(find("openblas-scipy")))
    random = np.random.default_rng(1)
    weights = {
        one["name"]: (0.05 * random.standard_normal(one["shape"])).astype(np.float32)
        for one in network.parameters
    }
    backend.build(network, weights, {"name": "sgd", "learning_rate": 1e-3})
    series = random.standard_normal((batch, steps, units)).astype(np.float32)
    backend.step("train", {"series": series, "labels": random.integers(0, 2, batch)})
    seconds = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        backend.step("train")
        seconds.append(time.perf_counter() - begin)
    return contender.isa, min(seconds), 2.0 * network.multiply_accumulates("train")


def _peak() -> float:
    return max(measure_peak_flops(1, seconds=0.3).flops_per_s for _ in range(3))
