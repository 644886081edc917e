"""Step time against step number: `step_number.py [STEPS [BACKEND ...]]`.

Trains MLP for so many steps (2,000) with every native stack, twice: repeated in passes from the initial
state, as every timed launch does it, and on and on. Launches of all alternate, so that a slow machine is slow
for each; a block of 100 steps is told by the fastest launch of its 10th percentile, over that of the first
block.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timetrial.analysis.steps import steps_of
from timetrial.cases.case import Case, Workload
from timetrial.launch import LaunchPlan, Measure, run_launch
from timetrial.records import store
from timetrial.records.model import LaunchRecord
from timetrial.statistics.stopping import StopRule
from timetrial.workloads import prepare

BACKENDS = ("eigen", "cblas", "onednn")
BLOCK = 100
ROUNDS = 3
FLAT = 0.05  # above the first block: neighbors move a block by less
NEVER_ENOUGH = StopRule(half_width=0.0)
LONG_NS = 600_000_000_000
WORKLOAD = Workload(
    network="mlp",
    dataset="digits28",
    batch_size=16,
    optimizer={"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0},
)


def main(steps: int, backends: list[str]) -> None:
    """One line per stack and way, one number per block."""
    print(f"on this CPU a product of subnormal numbers takes {_cost_of_subnormals():.2f} times one of others")
    blocks: dict[tuple[str, str], NDArray[np.float64]] = {}
    last: dict[tuple[str, str], LaunchRecord] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for backend in backends:
                for way in ("passes", "on and on"):
                    key = backend, way
                    seen, last[key] = _launch(Path(folder) / f"{number} {backend} {way}", *key, steps)
                    blocks[key] = np.minimum(blocks.get(key, np.inf), seen)
    print(f"{'':19}" + "".join(f"{BLOCK * number:>6}" for number in range(len(next(iter(blocks.values()))))))
    for (backend, way), times in blocks.items():
        ratio = times / times[0]
        verdict = "flat" if ratio.max() <= 1 + FLAT else f"up to {ratio.max():.2f}"
        print(
            f"{backend:8} {way:10}"
            + "".join(f"{one:6.2f}" for one in ratio)
            + f"  {verdict}{_why(last[backend, way])}"
        )


def _cost_of_subnormals() -> float:
    """A product of subnormal numbers over one of normal ones, on this CPU; the fastest of many."""
    took = []
    for size in (1e-40, 1e-3):
        numbers, product = np.full(100_000, size, np.float32), np.empty(100_000, np.float32)
        times = []
        for _ in range(300):
            began_ns = time.perf_counter_ns()
            np.multiply(numbers, np.float32(0.9), out=product)
            times.append(time.perf_counter_ns() - began_ns)
        took.append(min(times))
    return took[0] / took[1]


def _launch(folder: Path, backend: str, way: str, steps: int) -> tuple[NDArray[np.float64], LaunchRecord]:
    plan = LaunchPlan(
        case=Case(backend=backend, workload=WORKLOAD, settings={"threads": "1"}),
        prepared=prepare(WORKLOAD, seed=1, epochs=1 + steps // 50),
        purpose="speed",
        folder=folder,
        measure=Measure(
            rule=NEVER_ENOUGH,
            min_ns=LONG_NS,
            budget_ns=LONG_NS,
            max_steps=steps + 1,
            detailed_steps=0,
            passes=way == "passes",
        ),
    )
    record = run_launch(plan)
    if record.outcome != "ok":
        raise SystemExit(f"{backend}: {record.outcome}: {record.reason}")
    seen = steps_of(record, store.read_stamps(folder), store.read_losses(folder))
    times = np.where(seen.follows_break, np.nan, seen.duration_ns)[1:]
    whole = len(times) // BLOCK
    return np.nanquantile(times[: whole * BLOCK].reshape(whole, BLOCK), 0.1, axis=1), record


def _why(record: LaunchRecord) -> str:
    """What the record says of subnormal numbers."""
    if not record.subnormals:
        return ""
    return f", {sum(one.count for one in record.subnormals):,} subnormal numbers at the end"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, sys.argv[2:] or list(BACKENDS))
