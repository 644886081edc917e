"""From the stamps of a launch to the durations of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from timetrial.heats.lengths import cold_steps
from timetrial.records.model import LaunchRecord, Purpose, SegmentKind
from timetrial.statistics.steady import Steady, find_steady

SEGMENT_BOUNDARY, STEP_BOUNDARY, RESET_BOUNDARY = 0, 1, 6  # TT_SEGMENT, TT_STEP, TT_RESET of recorder.h
PLAIN: tuple[SegmentKind, ...] = ("warmup", "steady")  # neither a launch's first step nor one with parts
FEWEST_CALM = 3  # turns that nobody disturbed; of fewer, disturbed ones count as well

Value = TypeVar("Value", np.bool_, np.object_)


@dataclass(frozen=True)
class Steps:
    """One entry per step, in order: duration, end, loss, its segment, whether it is the first there,
    whether it is the first behind a reset to the initial state, and whether it is left out because others
    disturbed its turn."""

    duration_ns: npt.NDArray[np.int64]  # as stamped
    end_ns: npt.NDArray[np.int64]  # CLOCK_MONOTONIC
    loss: npt.NDArray[np.float64]  # NaN: the step gave none
    segment: npt.NDArray[np.int64]  # number of its segment
    first_in_segment: npt.NDArray[np.bool_]  # whether a step is the first of its segment
    first_in_pass: npt.NDArray[np.bool_]  # whether it is the first behind a reset
    disturbed: npt.NDArray[np.bool_]  # whether others disturbed its turn
    kinds: tuple[SegmentKind, ...]  # of the segments

    def __len__(self) -> int:
        return len(self.duration_ns)

    def are(self, *kinds: SegmentKind) -> npt.NDArray[np.bool_]:
        """Which steps are in segments of one of these kinds."""
        return self._of_segments(np.array([kind in kinds for kind in self.kinds], np.bool_))

    @property
    def kind(self) -> npt.NDArray[np.object_]:
        """Of the segment of each step, as a word."""
        return self._of_segments(np.array(self.kinds, object))

    def _of_segments(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        return values[self.segment] if len(values) else np.empty(len(self), values.dtype)

    @property
    def follows_break(self) -> npt.NDArray[np.bool_]:
        """Which steps come behind a pause or a reset: what they find in their caches is not a step's."""
        return self.first_in_segment | self.first_in_pass


@dataclass(frozen=True)
class StampedSteps:
    """The steps of some segments, one behind the other, and the time of their resets."""

    duration_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    segment: npt.NDArray[np.int64]  # of each step, from 0
    first_in_segment: npt.NDArray[np.bool_]
    first_in_pass: npt.NDArray[np.bool_]
    reset_ns: npt.NDArray[np.int64]  # of each reset


def stamped_steps(stamps: npt.NDArray[np.uint64], sizes: Sequence[int] | None = None) -> StampedSteps:
    """Of the stamps of segments with these numbers of stamps; without `sizes`, of one. A step begins where
    the one before it ended, or the reset, or the pause; stamps of parts are skipped: they belong to their
    step."""
    segment = np.repeat(np.arange(len(sizes or [0])), sizes or [len(stamps)])
    numbers = stamps & np.uint64(0xFF)
    is_border = (numbers <= STEP_BOUNDARY) | (numbers == RESET_BOUNDARY)
    times, numbers = (stamps[is_border] >> np.uint64(8)).astype(np.int64), numbers[is_border]
    segment = segment[is_border]
    inside = segment[1:] == segment[:-1]  # not from the end of one segment to the start of the next
    before, ends, taken = numbers[:-1], numbers[1:], np.diff(times)
    is_step = (ends == STEP_BOUNDARY) & inside
    segment_of = segment[1:][is_step]
    return StampedSteps(
        duration_ns=taken[is_step],
        end_ns=times[1:][is_step],
        segment=segment_of,
        first_in_segment=np.diff(segment_of, prepend=-1) != 0,
        first_in_pass=before[is_step] == RESET_BOUNDARY,
        reset_ns=taken[(ends == RESET_BOUNDARY) & inside],
    )


def steps_of(record: LaunchRecord, stamps: npt.NDArray[np.uint64], losses: npt.NDArray[np.float64]) -> Steps:
    """All steps of a launch."""
    segments = record.segments
    own = [stamps[one.first_stamp : one.first_stamp + one.stamps] for one in segments]
    found = stamped_steps(
        np.concatenate(own) if own else np.empty(0, np.uint64), [len(one) for one in own] or None
    )
    ends = np.flatnonzero(np.diff(found.segment, append=len(segments)))
    found.duration_ns[ends] += np.array([segments[one].behind_ns for one in found.segment[ends]], np.int64)
    loss = np.full(len(found.duration_ns), np.nan)
    starts = np.searchsorted(found.segment, np.arange(len(segments) + 1))
    for segment, start, end in zip(segments, starts, starts[1:], strict=False):
        known = losses[segment.first_loss : segment.first_loss + min(segment.losses, end - start)]
        loss[start : start + len(known)] = known
    return Steps(
        duration_ns=found.duration_ns,
        end_ns=found.end_ns,
        loss=loss,
        segment=found.segment,
        first_in_segment=found.first_in_segment,
        first_in_pass=found.first_in_pass,
        disturbed=np.isin(found.segment, _disturbed_segments(record)),
        kinds=tuple(segment.kind for segment in segments),
    )


def calm_turns(record: LaunchRecord) -> list[bool]:
    """Of each turn, whether its steps count: nobody disturbed it, or hardly any was left alone."""
    calm = [not turn.disturbed for turn in record.turns]
    return calm if sum(calm) >= FEWEST_CALM else [True] * len(calm)


def _disturbed_segments(record: LaunchRecord) -> list[int]:
    turns = [number for number, one in enumerate(record.segments) if one.kind == "turn"]
    return [number for number, calm in zip(turns, calm_turns(record), strict=False) if not calm]


def steps_of_turns(steps: Steps) -> list[npt.NDArray[np.int64]]:
    """Numbers of the steps of each turn that count: without those that the pause before has cooled, and
    without the first behind each reset, unless there is no other."""
    turns = []
    numbers = [number for number, kind in enumerate(steps.kinds) if kind == "turn"]
    bounds = np.searchsorted(steps.segment, [[number, number + 1] for number in numbers] or [[0, 0]])
    for own in (np.arange(first, end) for first, end in bounds if end > first):
        warm = own[cold_steps(len(own)) :]
        inner = warm[~steps.first_in_pass[warm]]
        turns.append(inner if len(inner) else warm)
    return turns


def may_count(follows_break: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which plain steps may count for the step time. The first step of each segment and of each pass may
    not: a pause has cooled its caches, or a reset has filled them. Steps so long that each is the first all
    may."""
    inner = ~follows_break
    return inner if inner.any() else follows_break


def steady_mask(steps: Steps, purpose: Purpose) -> tuple[npt.NDArray[np.bool_], Steady | None]:
    """Which steps count for the step time, and what the launch says about its steady state.

    Of a launch that took turns: the warm ones of turns that count (calm_turns).
    Of a speed launch: all plain steps from the one on at which the steady state begins (steady.py), or the
    best cut there was if it has none. Where they are too few or too noisy to tell, and in launches that warm
    up for a given time (then None): those in segments that are `steady`.
    """
    steady = None
    mask = np.zeros(len(steps), np.bool_)
    if purpose == "speed" and (turns := steps_of_turns(steps)):
        mask[np.concatenate(turns)] = True
        return mask & ~steps.disturbed, None
    if purpose == "speed":
        plain = _counting(steps, PLAIN)
        steady = find_steady(steps.duration_ns[plain])
    if steady is not None and steady.label is not None:
        chosen = plain[steady.first :]
    else:
        chosen = _counting(steps, ("steady",))
    mask[chosen] = True
    return mask, steady


def steady_before_turns(steps: Steps) -> npt.NDArray[np.bool_] | None:
    """Of a launch in a heat: the steps of its warm-up from the one on at which the steady state began. None:
    it took no turns, or its warm-up ended before one was seen."""
    warm = np.flatnonzero(steps.are("warmup"))
    if not steps.are("turn").any() or len(warm) == 0:
        return None
    seen = find_steady(steps.duration_ns[warm])
    if not seen.accepted:
        return None
    mask = np.zeros(len(steps), np.bool_)
    mask[warm[seen.first :]] = True
    return mask


def mean_per_step_ns(steps: Steps, counting: npt.NDArray[np.bool_]) -> float:
    """Wall time of the steady part over its steps: every plain step from the first one that counts on, the
    first ones of segments too, because work that was put off is done there.

    Of turns: the mean over turns of the time per step of those that count.
    """
    if steps.are("turn")[counting].all():
        return _mean_of_turns(steps, counting)
    first = int(np.argmax(counting))
    kinds = {steps.kinds[segment] for segment in np.unique(steps.segment[counting])}
    return float(np.mean(steps.duration_ns[first:][steps.are(*kinds)[first:]]))


def whole_over_counting(steps: Steps, counting: npt.NDArray[np.bool_]) -> float | None:
    """Of turns that count: the time per step of all of their steps, over that of those that count, so with
    the first ones, which find other caches, and where work could be put off to. None: it took no turns."""
    if not steps.are("turn")[counting].all():
        return None
    whole = np.isin(steps.segment, np.unique(steps.segment[counting]))
    return _mean_of_turns(steps, whole) / _mean_of_turns(steps, counting)


def _mean_of_turns(steps: Steps, chosen: npt.NDArray[np.bool_]) -> float:
    """The mean over segments of the mean of the chosen steps."""
    turns = np.split(steps.duration_ns[chosen], np.flatnonzero(np.diff(steps.segment[chosen])) + 1)
    return fmean(float(np.mean(one)) for one in turns)


def _counting(steps: Steps, kinds: tuple[SegmentKind, ...]) -> npt.NDArray[np.int64]:
    """Numbers of the steps in segments of these kinds that may count."""
    own = np.flatnonzero(steps.are(*kinds))
    return own[may_count(steps.follows_break[own])]


def cpu_time_per_step_ns(record: LaunchRecord) -> float | None:
    """CPU time of a steady step, all threads together. None where no segment has it."""
    known = [one for one in record.segments if one.kind == "steady" and one.cpu_ns is not None and one.steps]
    if not known:
        return None
    return sum(one.cpu_ns or 0 for one in known) / sum(one.steps for one in known)
