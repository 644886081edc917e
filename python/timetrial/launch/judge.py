"""The judge: the `reference` backend runs the same proof sequence, once per workload and plug-in."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.launch.job import fingerprint, make_job
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.proof import SEQUENCE, Proof
from timetrial.launch.registry import resolve
from timetrial.workloads.cache import cached

JUDGE = "reference"


def judged(plan: LaunchPlan, run: Callable[[LaunchPlan, Any], Proof]) -> Proof:
    """The judge's proof of the plan's workload and task, from the cache or from a launch of its own.

    `run(plan, contender)` makes a launch and gives its proof; LaunchError where the judge cannot.
    """
    case = dataclasses.replace(plan.case, backend=JUDGE, settings={}, axes={})
    contender = resolve(case)
    folder: Path = plan.folder / "judge"
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
