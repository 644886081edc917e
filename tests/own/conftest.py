"""Modules of a user's, written into the working directory of the test."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import MS, SHORT

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.launch import LaunchPlan, Measure, run_launch
from timetrial.records.model import LaunchRecord
from timetrial.workloads import prepare

Write = Callable[..., Path]
# Counted in steps, however slow the machine is at the moment.
STEPS = dataclasses.replace(SHORT, warmup_ns=60_000 * MS, steady_ns=60_000 * MS, max_steps=45)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """project("mine.py", text) writes a file below the working directory and gives its path."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def environment(tmp_path: Path) -> Write:
    """environment("before", "1.0", numpy=True): a virtual environment with a package `mypkg` of this version;
    its interpreter."""

    def make(name: str, version: str, *, numpy: bool = True) -> Path:
        import venv

        folder = tmp_path / name
        venv.create(folder, with_pip=False, symlinks=True)
        packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        if numpy:
            (packages / "numpy.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
        (packages / "mypkg").mkdir()
        (packages / "mypkg" / "__init__.py").write_text(
            f'__version__ = "{version}"\n\n\ndef make_step():\n    return lambda: float(__version__)\n'
        )
        return folder / "bin" / "python"

    return make


@pytest.fixture
def plan(project: Write, tmp_path: Path) -> Callable[..., LaunchPlan]:
    """plan(text) is for make() of a module with this text."""

    def plan(
        text: str,
        purpose: Any = "speed",
        *,
        python: Path | None = None,
        batch_size: int | None = None,
        limits: dict[str, float] | None = None,
        max_steps: int = STEPS.max_steps,
        measured: Measure = STEPS,
        **settings: str,
    ) -> LaunchPlan:
        project("mine.py", text)
        workload = Workload(NO_NETWORK, NO_NETWORK, batch_size, {})
        measure = dataclasses.replace(
            measured, max_steps=max_steps, limits=dataclasses.replace(measured.limits, **(limits or {}))
        )
        named = {"python": str(python)} if python else {}
        return LaunchPlan(
            case=Case("mine:make", workload, settings={**settings, **named}),
            prepared=prepare(workload, seed=1, epochs=1),
            purpose=purpose,
            folder=tmp_path / f"launch-{purpose}",
            measure=measure,
        )

    return plan


@pytest.fixture
def launch(plan: Callable[..., LaunchPlan]) -> Callable[..., LaunchRecord]:
    """launch(text) runs make() of a module with this text; arguments as of plan()."""
    return lambda *asked, **more: run_launch(plan(*asked, **more))
