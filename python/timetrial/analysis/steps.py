"""From the stamps of a launch to the durations of its steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steady import Steady, find_steady
from timetrial.records.model import LaunchRecord, Purpose, SegmentKind

SEGMENT_BOUNDARY, STEP_BOUNDARY = 0, 1  # TT_SEGMENT and TT_STEP of recorder.h
PLAIN: tuple[SegmentKind, ...] = ("warmup", "steady")  # neither a launch's first step nor one with parts


@dataclass(frozen=True)
class Steps:
    """One entry per step, in order: duration, end, loss, its segment, whether it is the first there."""

    duration_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]  # CLOCK_MONOTONIC
    loss: npt.NDArray[np.float64]
    segment: npt.NDArray[np.int64]
    first_in_segment: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.duration_ns)


def steps_of(record: LaunchRecord, stamps: npt.NDArray[np.uint64], losses: npt.NDArray[np.float64]) -> Steps:
    """All steps of a launch. Stamps of parts are skipped: they belong to their step."""
    durations, ends, numbers, firsts, kinds, step_losses = [], [], [], [], [], []
    for number, segment in enumerate(record.segments):
        own = stamps[segment.first_stamp : segment.first_stamp + segment.stamps]
        borders = own[(own & np.uint64(0xFF)) <= STEP_BOUNDARY]
        times = (borders >> np.uint64(8)).astype(np.int64)
        n = max(len(times) - 1, 0)
        durations.append(np.diff(times))
        ends.append(times[1:])
        numbers.append(np.full(n, number))
        firsts.append(np.arange(n) == 0)
        kinds.append(np.full(n, segment.kind, dtype=object))
        loss = np.full(n, np.nan)
        known = losses[segment.first_loss : segment.first_loss + min(segment.losses, n)]
        loss[: len(known)] = known
        step_losses.append(loss)
    if not durations:
        empty = np.empty(0, np.int64)
        return Steps(empty, empty, np.empty(0), empty, np.empty(0, np.bool_), np.empty(0, object))
    return Steps(
        duration_ns=np.concatenate(durations),
        end_ns=np.concatenate(ends),
        loss=np.concatenate(step_losses),
        segment=np.concatenate(numbers),
        first_in_segment=np.concatenate(firsts),
        kind=np.concatenate(kinds),
    )


def may_count(first_in_segment: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which plain steps may count for the step time. The first step of each segment may not: a pause has
    cooled its caches. Steps so long that every segment holds only one all may."""
    inner = ~first_in_segment
    return inner if inner.any() else first_in_segment


def steady_mask(steps: Steps, purpose: Purpose) -> tuple[npt.NDArray[np.bool_], Steady | None]:
    """Which steps count for the step time, and what the launch says about its steady state.

    Of a speed launch: all plain steps from the one on at which the steady state begins (steady.py), or the
    best cut there was if it has none. Where they are too few or too noisy to tell, and in launches that warm
    up for a given time (then None): those in segments that are `steady`.
    """
    steady = None
    if purpose == "speed":
        plain = _counting(steps, PLAIN)
        steady = find_steady(steps.duration_ns[plain])
    if steady is not None and steady.label is not None:
        chosen = plain[steady.first :]
    else:
        chosen = _counting(steps, ("steady",))
    mask = np.zeros(len(steps), np.bool_)
    mask[chosen] = True
    return mask, steady


def mean_per_step_ns(steps: Steps, counting: npt.NDArray[np.bool_]) -> float:
    """Wall time of the steady part over its steps: every plain step from the first one that counts on, the
    first ones of segments too, because work that was put off is done there."""
    first = int(np.argmax(counting))
    kinds = set(steps.kind[counting].tolist())
    whole = np.isin(steps.kind.astype(str), sorted(kinds)) & (np.arange(len(steps)) >= first)
    return float(np.mean(steps.duration_ns[whole]))


def _counting(steps: Steps, kinds: tuple[SegmentKind, ...]) -> npt.NDArray[np.int64]:
    """Numbers of the steps in segments of these kinds that may count."""
    own = np.flatnonzero(np.isin(steps.kind.astype(str), kinds))
    return own[may_count(steps.first_in_segment[own])]


def cpu_time_per_step_ns(record: LaunchRecord) -> float | None:
    """CPU time of a steady step, all threads together. None where no segment has it."""
    known = [one for one in record.segments if one.kind == "steady" and one.cpu_ns is not None and one.steps]
    if not known:
        return None
    return sum(one.cpu_ns or 0 for one in known) / sum(one.steps for one in known)
