"""What a launch does in a heat: it waits until all have started and warms up, then runs when it is its turn
and is stopped when it is not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from timetrial.cautions import Caution
from timetrial.heats.heat import Report
from timetrial.heats.lengths import FEWEST_WARMUP_STEPS
from timetrial.launch.channel import Channel
from timetrial.launch.decisions import Stage, warmup_stages
from timetrial.records.model import Turn
from timetrial.statistics.steady import FEWEST_BLOCKS, find_steady

if TYPE_CHECKING:
    from timetrial.heats.heat import Seat

# On a noisy machine nothing shows whether so many blocks are steady; the rounds cancel what is left.
ENOUGH_BLOCKS = 2 * FEWEST_BLOCKS


def await_others(seat: Seat, channel: Channel) -> int:
    """Behind the first step: the contender is stopped while others start, and goes where it rides if it
    started elsewhere. How long it was [ns]."""
    began = time.monotonic_ns()
    channel.process.pause()
    _go_where_it_rides(seat, channel)
    seat.arrive()
    channel.process.resume()
    return time.monotonic_ns() - began


def _go_where_it_rides(seat: Seat, channel: Channel) -> None:
    if seat.starts_on is not None and channel.plan.processors is not None:
        channel.watch.move(seat.starts_on, channel.plan.processors)


def run_turns(seat: Seat, channel: Channel, *, parts: Stage | None, taken: list[Turn]) -> str | None:
    """From its warm-up to the last turn; the contender runs again when it returns. What to warn of,
    if anything.

    Warm-up takes as many steps as it needs. `parts`: steps whose parts are timed, if any. All begin their
    turns with the same step. `taken` gets what was seen of each turn that was finished.
    """
    process, runner, watch, measure = channel.process, channel.runner, channel.watch, channel.plan.measure
    unsteady = False
    for stage in warmup_stages(measure):
        runner.run_stage(stage)
        warm = runner.durations_ns("warmup")
        steady = find_steady(warm)
        # Where there are too few steps to tell, or too much noise, the rounds cancel what is left.
        unsteady = steady.label is not None and not steady.accepted
        if steady.accepted or (steady.label is None and steady.blocks >= ENOUGH_BLOCKS):
            break
        if len(warm) >= FEWEST_WARMUP_STEPS and np.sum(warm) >= measure.warmup_ns:
            break  # a piece is one step at least: of steps of seconds, all pieces would take minutes
    step_ns = float(np.median(warm[len(warm) // 2 :]))
    if parts is not None:  # now, because behind the last round others end beside it
        runner.run_stage(parts)
        runner.run_stage(Stage("warmup", 1))  # a whole step gives back what those in parts have kept
    channel.rewind()
    _go_where_it_rides(seat, channel)  # threads that began since: a runtime may bind them as it was bound
    watch.begin_steady()
    turn_watch = watch.turn_watch()
    report = Report(step_ns)
    stopped_ns = 0  # all other time counts: pools spin between the last step and the stop
    while True:
        process.pause()
        began = time.monotonic_ns()
        if turn_watch.round is not None:
            taken.append(turn_watch.end())
            first, last = runner.spans[-1]
            report = Report((last - first) / runner.segments[-1].steps, disturbed=taken[-1].disturbed)
        ride = seat.wait(report)
        if ride is not None:
            turn_watch.begin(ride.round, watch.habits.cpus)
        stopped_ns += time.monotonic_ns() - began
        if ride is None:
            break
        process.resume()
        runner.run_stage(Stage("turn", ride.steps))
    watch.end_steady([one for one in runner.segments if one.kind == "turn"], stopped_ns=stopped_ns)
    process.resume()
    return Caution.TURNS_UNSTEADY.words() if unsteady else None
