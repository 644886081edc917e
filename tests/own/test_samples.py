"""How many samples a step has, only the step may know: races ask its launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import timetrial as tt
from timetrial.analysis.pairs import step_time_log_ratios, turns_of
from timetrial.records.race import pair_folder
from timetrial.records.store import read_launch
from timetrial.results.results import LaunchFiles

STEPS = """
def make(samples):
    def step():
        return float(sum(range(2000)))
    step.samples = samples
    return step

def small():
    return make(8)

def large():
    return make(16)
"""


def test_times_of_steps_with_other_samples_are_not_compared(
    project: Callable[..., Path], results_folder: Path
) -> None:
    project("mine.py", STEPS)
    race = tt.race("mine:small", "mine:large", results=results_folder, quiet=True, confirm=False)
    assert race.verdict is None
    assert "8 and 16 samples" in str(race.duels[0].reason)


def test_their_throughput_is(project: Callable[..., Path], results_folder: Path) -> None:
    project("mine.py", STEPS)
    race = tt.race(
        "mine:small", "mine:large", metric="samples_per_s", results=results_folder, quiet=True, confirm=False
    )
    assert race.verdict == "better"  # twice the samples in the same time
    for pair in race.pairs:
        if pair.void is None:
            # Exactly: twice the samples, over the step times of that pair, whatever others took from them.
            times = step_time_log_ratios(*(turns(race.folder, pair.number, side) for side in pair.sides))
            (found,) = pair.log_ratios.values()
            assert found == pytest.approx({name: math.log(2) - one for name, one in times.items()})


def turns(path: Path, number: int, side: str) -> list[npt.NDArray[np.float64]]:
    folder = pair_folder(path, number) / side
    record = read_launch(folder)
    return turns_of(LaunchFiles(record, folder).steps())
