"""What must hold at the end of a timed launch that trains."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.launch.outcome import LaunchError
from timetrial.records.files import explained


def check_parameters(
    ask: Callable[[str], dict[str, Any]], folder: Path, tables: Sequence[dict[str, Any]]
) -> None:
    """Raises LaunchError unless all last parameters are finite and some have changed. `tables`: the job's."""
    last = folder / "last"
    with explained(last):
        last.mkdir(exist_ok=True)
    try:
        ask(f"dump parameter {last.resolve()}")
        changed = [_has_changed(last / f"{table['name']}.npy", table) for table in tables]
        if tables and not any(changed):
            raise LaunchError("wrong", "no parameter has changed: nothing was trained")
    finally:
        shutil.rmtree(last, ignore_errors=True)


def _has_changed(path: Path, parameter: dict[str, Any]) -> bool:
    """Whether a parameter differs from its initial value. LaunchError if it is missing or not finite."""
    name = parameter["name"]
    if not path.exists():
        raise LaunchError("wrong", f"{name}: the contender has no parameter of this name at the end")
    last = np.load(path, allow_pickle=False)
    if not np.all(np.isfinite(last)):
        raise LaunchError("nan", f"{name} is not finite at the end")
    return not np.array_equal(last, np.load(parameter["file"], allow_pickle=False))
