"""What a launch does in a race: it warms up, then runs when it is its turn, and is stopped when it is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from timetrial.analysis.steady import FEWEST_BLOCKS, find_steady
from timetrial.launch.contender_process import ContenderProcess
from timetrial.launch.decisions import Stage, race_warmup_stages
from timetrial.launch.observe import Watch
from timetrial.launch.plan import Measure
from timetrial.launch.segments import SegmentRunner

if TYPE_CHECKING:
    from timetrial.launch.pair import Seat

# On a noisy machine nothing shows whether so many blocks are steady; the rounds cancel what is left.
ENOUGH_BLOCKS = 2 * FEWEST_BLOCKS


def run_turns(
    seat: Seat,
    process: ContenderProcess,
    runner: SegmentRunner,
    watch: Watch,
    measure: Measure,
    *,
    rewind: Callable[[], None],
) -> str | None:
    """From the first step to the last turn; the contender runs again when it returns. What to warn of, if
    anything. Warm-up takes as many steps as it needs; `rewind` leads to the step with which all sides begin
    their turns: as these have the same number of steps on every side, they are the same ones."""
    warning: str | None = None
    for stage in race_warmup_stages(measure):
        runner.run_stage(stage)
        if stage.kind == "first":
            watch.after_first_step()
            continue
        steady = find_steady(runner.durations_ns("warmup"))
        too_noisy = steady.label is None and steady.blocks >= ENOUGH_BLOCKS
        warning = None if steady.accepted or too_noisy else "raced before its steps were steady"
        if warning is None:
            break
    warm = runner.durations_ns("warmup")
    step_ns = float(np.median(warm[len(warm) // 2 :]))
    rewind()
    watch.begin_steady()
    stopped_ns = 0  # all other time counts: pools spin between the last step and the stop
    while (wait := _wait(process, seat, step_ns)).steps is not None:
        stopped_ns += wait.stopped_ns
        runner.run_stage(Stage("race", wait.steps))
    race = [one for one in runner.segments if one.kind == "race"]
    watch.end_steady(race, stopped_ns=stopped_ns + wait.stopped_ns)
    return warning


@dataclass(frozen=True)
class _Wait:
    steps: int | None  # of the turn that follows; None: the race is over
    stopped_ns: int


def _wait(process: ContenderProcess, seat: Seat, step_ns: float) -> _Wait:
    """Stopped until it is this contender's turn; it runs again when this returns."""
    process.pause()
    began = time.monotonic_ns()
    steps = seat.wait(step_ns)
    stopped_ns = time.monotonic_ns() - began
    process.resume()
    return _Wait(steps, stopped_ns)
