"""How long the proof of LeNet-5 takes for one contender, beside its starts and builds: what it is asked to
show, under both recipes, and the judging. The median of a few launches, nothing else running."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from figures import Figure
from honest_seeds import OPTIMIZER

from timetrial.cases.case import Case, Workload
from timetrial.launch import LaunchPlan, gate, run_launch
from timetrial.workloads import prepare

SECONDS = 3.0
LAUNCHES = 3
CONTENDERS = ("eigen", "cblas", "onednn", "libtorch", "pytorch")


def proof_figures() -> list[Figure]:
    """One for each contender."""
    return [
        Figure.at_most(
            f"proof of LeNet-5, {backend}, beside start and build",
            SECONDS,
            median(_seconds(backend, seed) for seed in range(1, LAUNCHES + 1)),
            "s",
        )
        for backend in CONTENDERS
    ]


def _seconds(backend: str, seed: int) -> float:
    work = Workload("lenet5", "digits28", 64, OPTIMIZER)
    case = Case(backend, work, settings={"threads": "1"})
    with tempfile.TemporaryDirectory() as folder, _gates_time() as spent:
        prepared = prepare(work, seed=seed, epochs=1)
        record = run_launch(LaunchPlan(case, prepared, "proof", Path(folder) / "proof", seed=seed))
    if record.parity is None or record.parity.status != "passed":
        raise SystemExit(f"{backend}, seed {seed}: {record.reason or record.parity}")
    return sum(spent)


@contextmanager
def _gates_time() -> Iterator[list[float]]:
    """Seconds inside whatever the gate does, but for the launch of the proof's own recipe: of that, what its
    contender is asked to show."""
    spent: list[float] = []
    inside = 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            nonlocal inside
            inside += 1
            began = time.monotonic()
            try:
                return function(*words, **options)
            finally:
                inside -= 1
                if not inside:
                    spent.append(time.monotonic() - began)

        return call

    parts = [(gate.Gate, name) for name in ("open", "run_proof", "judge_proof")]
    parts += [(gate, name) for name in ("stressed", "judge_of", "with_recipe")]
    with ExitStack() as patches:
        for owner, name in parts:
            patches.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name))))
        yield spent
