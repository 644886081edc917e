"""What an adapter's step costs by itself, in every interpreter of a framework: an empty one is timed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from figures import Figure

from timetrial.analysis.step_times import step_times_of
from timetrial.analysis.steps import steps_of
from timetrial.cases.case import Case, Workload
from timetrial.environments.marker import FILE, environments_folder
from timetrial.launch import LaunchPlan, Measure, run_launch
from timetrial.records import store
from timetrial.workloads import prepare

EMPTY = Path(__file__).parent / "empty"
LIMIT_US = 20.0
# One sample: copying a batch is no cost of the adapter.
WORKLOAD = Workload(
    "mlp", "synthetic", 1, {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0}
)
_VERSION = "import sys, numpy; print('%d.%d' % sys.version_info[:2])"


def adapter_figures(root: Path) -> list[Figure]:
    """One per version of Python, oldest first."""
    figures = []
    for version, python in sorted(_interpreters().items(), key=lambda item: int(item[0].split(".")[1])):
        step_us = min(_step_us(python, root / f"{version}-{number}") for number in range(3))
        figures.append(
            Figure.at_most(f"a framework's empty step, CPython {version}", LIMIT_US, step_us, "us")
        )
    return figures


def _interpreters() -> dict[str, Path]:
    """Version -> the running interpreter, or that of the first environment which has it."""
    found: dict[str, Path] = {}
    environments = [marker.parent for marker in sorted(environments_folder().glob(f"*/{FILE}"))]
    for python in [Path(sys.executable), *(folder / "bin" / "python" for folder in environments)]:
        if not os.access(python, os.X_OK):
            continue
        done = subprocess.run([str(python), "-c", _VERSION], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), python)
    return found


def _step_us(python: Path, folder: Path) -> float:
    case = Case(str(EMPTY), WORKLOAD, task="gradient", settings={"python": str(python)})
    measure = Measure(min_ns=200_000_000, budget_ns=250_000_000, detailed_steps=0)
    plan = LaunchPlan(case, prepare(WORKLOAD, seed=1, epochs=1), "speed", folder, measure=measure)
    record = run_launch(plan)
    if record.outcome != "ok":
        raise SystemExit(f"{python}: {record.outcome}: {record.reason}")
    steps = steps_of(record, store.read_stamps(folder), store.read_losses(folder))
    times = step_times_of(steps, record.purpose)
    assert times is not None
    return times.median.estimate / 1e3
