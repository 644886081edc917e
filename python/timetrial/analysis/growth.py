"""What grows from step to step in the launches of one case, and steps that are others from some call on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from timetrial.analysis.steps import PLAIN, calm_turns
from timetrial.cautions import Caution
from timetrial.statistics.growth import Change, Trend, common_change, trend

if TYPE_CHECKING:
    from timetrial.analysis.heats import FloatArray
    from timetrial.analysis.summary import Launch

LEAST_BYTES = 4096, 1 << 20  # that a step adds, and all that are seen together
LEAST_SHARE = 1.05  # of the first step's time that the last one takes
FEWEST_LAUNCHES = 3  # to tell a step's time from the machine's
BLOCKS = 20  # of the steps of a launch that took no turns


@dataclass(frozen=True)
class Growth:
    """Of a case. None: too few steps or launches to tell."""

    memory: Trend | None  # bytes
    time: Trend | None  # ns
    change: Change | None  # of the work, at the same call in every launch; None: there is none

    @property
    def words(self) -> list[str]:
        """What is to be said of it."""
        said, memory, time, change = [], self.memory, self.time, self.change
        if memory and memory.grows:
            size, total = f"{memory.per_step / 2**20:.2g}", f"{memory.last / 2**20:.0f}"
            said.append(Caution.MEMORY_GROWS.words(size=size, total=total, step=memory.step))
        if time and time.grows:
            each = 100 * time.per_step / time.first
            steps = next((10**power for power in range(1, 7) if each * 10**power >= 0.1), 10**7)
            whole = f"{100 * (time.last / time.first - 1):.0f}"
            said.append(Caution.SLOWS.words(percent=f"{each * steps:.2g}", steps=steps, whole=whole))
        if change:
            after, before = (f"{one / 1e6:.3g}" for one in (change.after_ns, change.before_ns))
            said.append(Caution.WORK_CHANGES.words(call=change.call, after=after, before=before))
        return said


def growth_of(launches: Sequence[Launch]) -> Growth:
    """Of the launches that count of one case, in the order in which they were taken."""
    return Growth(_memory(launches), _time(launches), common_change([one.change for one in launches]))


def _memory(launches: Sequence[Launch]) -> Trend | None:
    """Of private memory behind each segment: pages of files come and go as the machine likes."""
    series = []
    for segments in (one.record.segments for one in launches):
        ends = itertools.accumulate(one.steps for one in segments)
        held = [
            (end, one.rss_bytes - one.mapped_bytes)
            for end, one in zip(ends, segments, strict=True)
            if one.kind in (*PLAIN, "turn") and one.rss_bytes is not None and one.mapped_bytes is not None
        ]
        series.append(tuple(np.array(held).reshape(-1, 2).T))
    found = trend(series)
    if found is None:
        return None
    matters = found.per_step >= LEAST_BYTES[0] and found.last - found.first >= LEAST_BYTES[1]
    return replace(found, grows=found.grows and matters)


def _time(launches: Sequence[Launch]) -> Trend | None:
    """By itself, and against the others of the same rounds, who may have become faster. Where there are none,
    the machine may have drifted: then each launch must begin anew, below where the one before it ended."""
    times = [_step_times(one) for one in launches]
    own = found = trend(times)
    if own is None or len(times) < FEWEST_LAUNCHES:
        return None
    others = [one.level.others[one.turns.rounds] for one in launches if one.level and one.turns]
    if len(others) == len(times):  # a round in which nobody else rode counts by itself
        pairs = zip(times, others, strict=True)
        found = trend([(steps, ns * np.exp(-np.nan_to_num(slower))) for (steps, ns), slower in pairs])
    else:
        ends = [[float(np.median(part)) for part in np.array_split(ns, 4)] for _, ns in times]
        limit = (own.last - own.first) / 4
        if not all(after[0] < before[-1] - limit for before, after in itertools.pairwise(ends)):
            return replace(own, grows=False)
    return found and replace(
        found, grows=own.grows and found.grows and found.last >= LEAST_SHARE * found.first
    )


def _step_times(launch: Launch) -> tuple[FloatArray, FloatArray]:
    """Numbers of steps, and what a step took there."""
    record, times = launch.record, launch.times
    if launch.turns:
        ends = np.cumsum([one.steps for one in record.segments])
        ends = ends[[one.kind == "turn" for one in record.segments]][: len(record.turns)]
        return ends[np.array(calm_turns(record))].astype(np.float64), launch.turns.median_ns
    if times is None:
        return np.empty(0), np.empty(0)
    steps = np.array([np.flatnonzero(times.counting) + 1, times.durations_ns], np.float64)
    parts = np.array_split(steps, min(BLOCKS, steps.shape[1]), axis=1)
    return np.array([own[0, -1] for own in parts]), np.array([np.median(own[1]) for own in parts])
