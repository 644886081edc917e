"""What a stamp and an empty step cost, in C++ and in every CPython on this machine: acceptance test 1 of
docs/statistics.md."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from figures import Figure

from timetrial.core import create_recorder_file, runtime_dir

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "build" / "editable" / "self" / "stamp_cost"
INTERPRETERS = [f"python3.{minor}" for minor in range(6, 16)]


def clock_figures() -> list[Figure]:
    """Stamps and empty steps, in nanoseconds."""
    cost = json.loads(subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout)
    extra = cost["stamp_ns"] - cost["clock_ns"]
    figures = [
        Figure.at_most(f"stamp in C++, over the bare clock ({cost['clock_ns']:.1f} ns)", 5, extra, "ns"),
        Figure.at_most("empty step through the C++ loop", 60, cost["null_step_ns"], "ns"),
    ]
    for interpreter in _interpreters():
        python = _cost_in(interpreter)
        figures.append(
            Figure.at_most(f"stamp from CPython {python['python']}", 100, python["stamp_ns"], "ns")
        )
        figures.append(
            Figure.at_most(
                f"empty Python step through the loop, {python['python']}", 100, python["step_ns"], "ns"
            )
        )
    return figures


def _interpreters() -> list[str]:
    """CPythons that start, each version once."""
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python"))
    found: dict[str, str] = {}
    for command in [*INTERPRETERS, *map(str, pyenv)]:
        path = shutil.which(command)
        if path is None:
            continue
        ask = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.startswith("3."):
            found.setdefault(done.stdout.strip(), path)
    return [found[version] for version in sorted(found, key=lambda version: int(version.split(".")[1]))]


def _cost_in(interpreter: str) -> dict[str, float]:
    descriptor = create_recorder_file(1)
    command = [
        interpreter,
        str(HERE / "interpreter_cost.py"),
        str(runtime_dir()),
        f"/proc/self/fd/{descriptor}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, pass_fds=[descriptor])
    finally:
        os.close(descriptor)
    cost: dict[str, float] = json.loads(done.stdout)
    return cost
