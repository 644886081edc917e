"""The judge: a backend in double precision runs the same proof sequence, once per workload and plug-in.

`reference` (plain loops) judges while its answer takes seconds. Above that `cblas` in f64 does, which must
itself agree with `reference`, on the same network and a few images.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.core import Network
from timetrial.errors import TimetrialError, Unavailable
from timetrial.launch.cpus import allowed_cpus
from timetrial.launch.job import fingerprint, make_job
from timetrial.launch.outcome import LaunchError
from timetrial.launch.parity import compare, expected_of
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.proof import SEQUENCE, Proof, sequence_steps
from timetrial.launch.registry import resolve
from timetrial.records.model import Parity
from timetrial.workloads import prepare
from timetrial.workloads.cache import cached

Run = Callable[[LaunchPlan, Any], Proof]  # launches a plan with a contender; LaunchError where that fails


@dataclass(frozen=True)
class Judge:
    """A backend whose numbers count."""

    backend: str
    dtype: str = "f32"  # of the case: what the plug-in is asked for

    @property
    def name(self) -> str:
        """As records say it."""
        return self.backend if self.dtype == "f32" else f"{self.backend} ({self.dtype})"


SMALL = Judge("reference")  # always computes in double precision
LARGE = Judge("cblas", "f64")

# Of the whole sequence. `reference` does about 2e9 a second on one core, so this is some ten seconds.
REFERENCE_LIMIT = 20_000_000_000
# What the large judge is tried on: an odd number, so that two threads get unequal shares.
TRIAL_IMAGES = 3
TRIAL_TOLERANCE = 1e-9  # of everything but the prediction, which is handed over in f32


class NoJudge(TimetrialError):  # noqa: N818 - what it means, in the words of the record
    """Nobody can judge this workload here."""


def judged(plan: LaunchPlan, run: Run) -> tuple[Proof, str]:
    """The judge's proof of the plan's workload and task, from the cache or from a launch of its own, and the
    judge's name. NoJudge: it cannot run, or failed its own trial."""
    if plan.prepared.network is None:
        raise NoJudge("there is no network that a judge could compute")
    judge = choose_judge(plan.prepared.network, plan.case.task)
    if judge is LARGE:
        _try_judge(plan, run)
    return _answer(judge, plan, run), judge.name


def choose_judge(network: Network, task: str) -> Judge:
    """By the work of the sequence: its training steps, or its forward pass."""
    work = sum(
        steps * network.multiply_accumulates(kind) for kind, steps in sequence_steps(task).items() if steps
    )
    return SMALL if work <= REFERENCE_LIMIT else LARGE


def _try_judge(plan: LaunchPlan, run: Run) -> None:
    """The large judge against `reference`, at a size that both can do."""
    workload = dataclasses.replace(plan.case.workload, batch_size=TRIAL_IMAGES)
    trial = dataclasses.replace(
        plan,
        case=dataclasses.replace(plan.case, workload=workload),
        prepared=prepare(workload, seed=plan.seed, epochs=1),
    )
    parity = compare(
        _answer(LARGE, trial, run), _answer(SMALL, trial, run), expected_of(trial.prepared), SMALL.name
    )
    words = trial_problem(parity)
    if words is not None:
        raise NoJudge(f"the judge {LARGE.name} differs from {SMALL.name} on {TRIAL_IMAGES} images: {words}")


def trial_problem(parity: Parity) -> str | None:
    """Why a judge with this parity must not judge, in words; None: it may. Doubles that compute the same
    agree far better than a contender in f32 has to; only on the workload's own images may ties part them."""
    if parity.status != "passed":
        return parity.reason or parity.status
    for one in parity.comparisons:
        is_own = one.tensor.startswith("workload: ") or one.tensor == "output"
        if not is_own and (one.error is None or one.error > TRIAL_TOLERANCE):
            return f"{one.tensor}: error {one.error:.2g}, tolerance {TRIAL_TOLERANCE:g}"
    return None


def _answer(judge: Judge, plan: LaunchPlan, run: Run) -> Proof:
    settings = {"threads": str(len(allowed_cpus()))} if judge is LARGE else {}
    case = dataclasses.replace(
        plan.case, backend=judge.backend, dtype=judge.dtype, settings=settings, axes={}
    )
    folder: Path = plan.folder / "judge"
    try:
        contender = resolve(case)
        judge_plan = dataclasses.replace(
            plan, case=case, contender=contender, folder=folder, proof=None, environment={}
        )
        job = make_job(judge_plan, contender)
        recipe = {"plugin": contender.fingerprint, "work": fingerprint(job), "sequence": SEQUENCE}

        def make() -> Mapping[str, np.ndarray[Any, Any]]:
            try:
                return run(judge_plan, contender).to_arrays()
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        return Proof.from_folder(cached("judge", recipe, make).folder)
    except (LaunchError, Unavailable) as failure:
        raise NoJudge(f"the judge {judge.name} could not run: {failure}") from failure
