"""How many samples a step has, only the step may know: races ask its launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import timetrial as tt

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
    assert race.effect is not None
    assert 0.3 < race.effect.estimate < 3.0  # 100 % more, but for what others take from one of the sides
