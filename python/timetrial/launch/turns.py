"""What a launch does in a heat: it waits until all have started and warms up, then runs when it is its turn
and is stopped when it is not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from timetrial.cautions import Caution
from timetrial.heats.heat import Report
from timetrial.heats.lengths import FEWEST_WARMUP_STEPS
from timetrial.launch.behind import may_be_looked_behind, work_behind_ns
from timetrial.launch.channel import Channel
from timetrial.launch.decisions import Stage, warmup_stages
from timetrial.records.model import Turn
from timetrial.statistics.rhythm import span_of
from timetrial.statistics.steady import FEWEST_BLOCKS, find_steady

if TYPE_CHECKING:
    from timetrial.heats.heat import Seat

# On a noisy machine nothing shows whether so many blocks are steady; the rounds cancel what is left.
ENOUGH_BLOCKS = 2 * FEWEST_BLOCKS
EMPTY_NS = 1_000_000_000  # of steps that use up what helpers have put by while somebody listened to them
RHYTHM_STEPS = 160  # show a period of 64, and most bursts


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


def run_turns(seat: Seat, channel: Channel, *, parts: Stage | None, taken: list[Turn]) -> list[str]:
    """From its warm-up to the last turn; the contender runs again when it returns. What to warn of.

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
        fewest = 1 if channel.is_own_step else FEWEST_WARMUP_STEPS  # a proof's losses are compared
        if len(warm) >= fewest and np.sum(warm) >= measure.warmup_ns:
            break  # a piece is one step at least: of steps of seconds, all pieces would take minutes
    warm = _until_rhythm(channel, warm)
    step_ns = float(np.mean(warm[len(warm) // 2 :]))
    aftermath = watch.aftermath()
    looked = may_be_looked_behind(channel)
    leaves = looked and work_behind_ns(channel, aftermath, step_ns, "warmup") > 0
    goes_on = aftermath.helpers() if looked and measure.rhythm_ns else None
    if goes_on:
        leaves = False  # helpers never rest: what is theirs and what the step's, nobody knows
        runner.run_stage(Stage("warmup", measure.max_steps, EMPTY_NS, EMPTY_NS))
    if parts is not None:  # now, because behind the last round others end beside it
        runner.run_stage(parts)
        runner.run_stage(Stage("warmup", 1))  # a whole step gives back what those in parts have kept
    channel.rewind()
    _go_where_it_rides(seat, channel)  # threads that began since: a runtime may bind them as it was bound
    watch.begin_steady()
    turn_watch = watch.turn_watch()
    report = Report(step_ns, span=_span(channel, warm), goes_on=goes_on)
    stopped_ns = 0  # all other time counts: pools spin between the last step and the stop
    while True:
        behind_ns = aftermath.until_quiet(runner.spans[-1][1]) if leaves else 0
        process.pause()
        began = time.monotonic_ns()
        if turn_watch.round is not None:
            taken.append(turn_watch.end())
            runner.add_behind(len(runner.segments) - 1, behind_ns)
            first, last = runner.spans[-1]
            turn_ns = last - first + behind_ns
            report = Report(turn_ns / runner.segments[-1].steps, disturbed=taken[-1].disturbed)
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
    # The sides of a race warm up alike and are told by their ratio alone.
    unsteady = unsteady and channel.plan.purpose != "race"
    return [Caution.TURNS_UNSTEADY.words()] * unsteady + [Caution.LEAVES_WORK.words()] * leaves


def _until_rhythm(channel: Channel, warm: NDArray[np.int64]) -> NDArray[np.int64]:
    """More warm-up where a period of the steps is looked for; all steps of the warm-up."""
    left_ns = channel.plan.measure.rhythm_ns - int(np.sum(warm))
    if len(warm) < RHYTHM_STEPS and left_ns > 0:
        channel.runner.run_stage(Stage("warmup", RHYTHM_STEPS - len(warm), left_ns, left_ns))
    return channel.runner.durations_ns("warmup")


def _span(channel: Channel, warm: NDArray[np.int64]) -> int:
    """Over how many steps their time repeats, where somebody asks."""
    looked_for = channel.plan.purpose == "race" or channel.plan.measure.rhythm_ns
    return channel.backend.period or (span_of(warm) if looked_for else 1)
