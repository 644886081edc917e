"""Whether the gate refuses who is honest: `honest_seeds.py SEEDS NETWORK BACKEND...`, as in
`100 resnet20 onednn jax:eager`.

Each seed has its own initial values, order of samples and clear batches; each contender rounds in its own
way. Every tenth is proven in a large batch, which holds many decisions that rounding may turn. Behind
each proof comes a timed launch, which is another process and may choose other kernels: its first losses
and its end are judged. Prints who was refused, and why.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import time
from pathlib import Path

from timetrial.cases.case import Case, Workload
from timetrial.launch import LaunchPlan, Measure
from timetrial.launch.together import launch_together
from timetrial.records.model import LaunchRecord
from timetrial.workloads import prepare

# Dataset, batch size, and the large one.
NETWORKS = {
    "mlp": ("digits28", 16, 256),
    "lenet5": ("digits28", 16, 256),
    "resnet20": ("synthetic-cifar", 16, 128),
    "lstm-imdb": ("synthetic-sentences", 16, 64),
}
OPTIMIZER = {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0}
SHORT = Measure(min_ns=50_000_000, budget_ns=100_000_000)  # the first losses and the end are all that counts


def plan(network: str, backend: str, mode: str, seed: int, folder: Path) -> LaunchPlan:
    """A proof."""
    dataset, batch_size, large = NETWORKS[network]
    work = Workload(network, dataset, large if seed % 10 == 0 else batch_size, OPTIMIZER)
    settings = {"threads": "1", **({"mode": mode} if mode else {})}
    case = Case(backend, work, settings=settings)
    return LaunchPlan(case, prepare(work, seed=seed, epochs=1), "proof", folder, seed=seed)


def timed(proven: LaunchPlan, proof: LaunchRecord) -> LaunchPlan:
    """A timed launch behind it."""
    folder = proven.folder.with_name(f"{proven.folder.name}-timed")
    return dataclasses.replace(proven, purpose="speed", folder=folder, proof=proof.parity, measure=SHORT)


def main() -> int:
    """0 if nobody was refused."""
    if len(sys.argv) < 4 or not sys.argv[1].isdigit() or sys.argv[2] not in NETWORKS:
        sys.exit(f"{__doc__}\nNETWORK is one of {', '.join(NETWORKS)}.")
    refused, network = 0, sys.argv[2]
    for words in sys.argv[3:]:
        backend, _, mode = words.partition(":")
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as root:
            seeds = range(1, int(sys.argv[1]) + 1)
            plans = [plan(network, backend, mode, seed, Path(root) / str(seed)) for seed in seeds]
            at_once = len(os.sched_getaffinity(0))
            proofs = launch_together(plans, at_once, lambda _: None)
            behind = [timed(one, proof) for one, proof in zip(plans, proofs, strict=True)]
            ends = launch_together(behind, at_once, lambda _: None)
        records = [*proofs, *ends]
        bad = {
            (record.seed, record.purpose): f"{record.outcome}: {record.reason or judged}"
            for record in records
            for judged in [record.parity if record.purpose == "proof" else record.end]
            if record.outcome != "ok" or judged is None or judged.status != "passed"
        }
        print(
            f"{network} {words}: {len(bad)} of {len(records)} refused, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        for (seed, purpose), why in sorted(bad.items()):
            print(f"  seed {seed}, {purpose}: {why[:2000]}", flush=True)
        refused += len(bad)
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
