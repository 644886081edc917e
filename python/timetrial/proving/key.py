"""Which proofs may be kept, and everything that decides one: its key."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import timetrial
from timetrial.cases.case import Case, Workload
from timetrial.cases.environment import variables_of
from timetrial.contenders.compile_cache import model_and_flags
from timetrial.contenders.registry import Contender, resolve
from timetrial.core import _core, native
from timetrial.errors import TimetrialError
from timetrial.proof.judge import LARGE, SMALL, JudgingBackend
from timetrial.proving.packages import digest_of_packages

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan

PACKAGE = Path(timetrial.__file__).resolve().parent


def may_be_kept(plan: LaunchPlan) -> bool:
    """Whether the key holds all that decides the proof. Not of a step of one's own, of a backend that is
    given as a path, nor of one that stands on the user's own install: nobody looks at all of their files. Not
    of layers of the user's own either, whose code judges."""
    contender, network = plan.contender, plan.prepared.network
    if contender is None or network is None or network.has_own_kinds:
        return False
    if contender.kind == "callable" or "unprovable" in contender.flags or contender.user_path is not None:
        return False
    word = plan.case.backend
    if "/" in word or word.endswith(".so"):
        return False
    if any(_names_files(name, value) for name, value in _variables(plan).items()):
        return False
    if contender.kind == "native":
        return True
    return PACKAGE in contender.path.resolve().parents and digest_of_packages(contender) is not None


def _variables(plan: LaunchPlan) -> dict[str, str]:
    """What is asked that names what shall be loaded."""
    asked = {**plan.environment, **variables_of(plan.case.settings)}
    library = plan.case.settings.get("malloc.library", "")
    return {**{name: str(value) for name, value in asked.items()}, "malloc.library": library}


def _names_files(variable: str, value: str) -> bool:
    """Files whose content nobody looks at decide then what is computed."""
    if variable == "malloc.library":
        return "/" in value
    return variable.startswith("LD_") or variable.endswith("PATH")


def recipe_of(plan: LaunchPlan, contender: Contender) -> dict[str, Any]:
    """Plain values. Folders in the job are named by what they hold."""
    job = json.dumps(plan.prepared.job, sort_keys=True, default=str)
    return {
        "case": json.loads(json.dumps(plan.case.training_content, default=str)),
        "work": hashlib.sha256(job.encode()).hexdigest(),
        "seed": plan.seed,
        "environment": {name: str(value) for name, value in plan.environment.items()},
        "contender": contender.fingerprint,
        "packages": digest_of_packages(contender),
        "path": os.environ.get("PATH", ""),  # decides which compiler a contender finds
        "judges": {one.name: judge_fingerprint(one) for one in (SMALL, LARGE)},
        "cpu": model_and_flags(),
        "timetrial": timetrial.__version__,
        "code": code_hash(),
        "python": [platform.python_implementation(), sys.version],
        "numpy": np.__version__,
    }


@cache
def judge_fingerprint(judge: JudgingBackend) -> str:
    """Of the files that judge; "none" where this machine cannot run them."""
    nothing = Workload(network="", dataset="", batch_size=1, optimizer={})
    try:
        return resolve(Case(backend=judge.backend, workload=nothing, dtype=judge.dtype)).fingerprint
    except TimetrialError:
        return "none"


@cache
def code_hash() -> str:
    """Of all Python files of this package, and of the native ones that run contenders and look at them."""
    programs = (one for one in native.child_path().parent.iterdir() if one.is_file())
    runtime = (one for one in native.runtime_dir().iterdir() if one.is_file())
    files = [*PACKAGE.rglob("*.py"), Path(_core.__file__), *programs, *runtime]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file}\n{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
