"""Whether a contender's stamps can be true: against the parent's clock, and against its CPU time.

A contender writes its stamps itself, and could write others. What it cannot do is be at work while nobody
sees it: a segment lies between the order for it and its answer, one segment behind another, and the thread
that runs the steps uses no processor but for what the stamps account for. So stamps that claim less time than
passed leave time over, in which that thread was on a processor; only where others take much of it, there is
room for a lie. (Stamps that keep their sum and only make most steps short and a few long pass here: such a
launch has a mean far above its median.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from timetrial.cautions import Caution
from timetrial.core.observer import Observation
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Segment, SegmentKind

CLOCK_SLACK_NS = 1_000  # between two processors' readings of one clock
# CPU time of the thread of the steps beside them: between two segments it answers and maps a window.
BESIDE_SHARE = 0.1
BESIDE_NS = 20_000_000
BESIDE_SEGMENT_NS = 2_000_000
AWAKE_SHARE = 0.8  # of the stamped time, that all threads together were running or waiting for a processor
FEWEST_NS = 50_000_000
# CPU time of a step on a batch that was never seen, over that of a timed one: honest contenders have 0.7 to 4
# (pools that spin beside others). Below the second, where tiny steps are all overhead, nothing is said, nor
# of fewer timed steps. Of these a quarter may be the first of their kind.
REMEMBERS = 8.0
REMEMBERS_NS = 1_000_000
REMEMBERS_STEPS = 20
KNOWN_SHARE = 0.75


def check_order(times: NDArray[np.int64], ordered_ns: int, before_ns: int, answered_ns: int) -> None:
    """The times of one segment's stamps.

    LaunchError unless they go forward, from behind its order (and behind the segment before it) to ahead of
    its answer.
    """
    if np.any(np.diff(times) < 0):
        raise LaunchError("wrong", "its stamps go backward: they are not the clock's")
    early = max(ordered_ns, before_ns) - int(times[0])
    late = int(times[-1]) - answered_ns
    if early > CLOCK_SLACK_NS:
        raise LaunchError("wrong", f"a segment begins {early / 1e6:.3g} ms before it could, by its stamps")
    if late > CLOCK_SLACK_NS:
        raise LaunchError("wrong", f"a segment ends {late / 1e6:.3g} ms after its answer, by its stamps")


@dataclass(frozen=True)
class Accounts:
    """Between two looks at a contender."""

    stamped_ns: int  # from the first to the last stamp of each segment, added up
    segments: int
    main_cpu_ns: int  # of the thread that runs the steps
    awake_ns: int  # all threads together: on a processor, or ready for one

    @classmethod
    def between(
        cls, pid: int, first: Observation, last: Observation, spans: Sequence[tuple[int, int]]
    ) -> Accounts:
        """`spans`: first and last stamp of each segment."""
        before = {thread.tid: thread for thread in first.threads}
        main_cpu = 0
        awake = last.cpu_ns - first.cpu_ns  # with threads that have ended since
        for thread in last.threads:
            old = before.get(thread.tid)
            awake += thread.wait_ns - (old.wait_ns if old else 0)
            if thread.tid == pid:
                main_cpu = thread.cpu_ns - (old.cpu_ns if old else 0)
        inside = [(max(a, first.time_ns), min(b, last.time_ns)) for a, b in spans]
        counted = [b - a for a, b in inside if b > a]
        return cls(sum(counted), len(counted), main_cpu, awake)

    def check(self) -> None:
        """LaunchError where the thread of the steps was at work outside all that is stamped."""
        beside_ns = BESIDE_NS + self.segments * BESIDE_SEGMENT_NS
        if self.main_cpu_ns > self.stamped_ns * (1 + BESIDE_SHARE) + beside_ns:
            raise LaunchError(
                "wrong",
                f"the thread that runs the steps used {self.main_cpu_ns / 1e6:.0f} ms of CPU time, and its "
                f"stamps account for {self.stamped_ns / 1e6:.0f} ms: it works outside the clock",
            )

    @property
    def warning(self) -> str | None:
        """Where a step sleeps instead of computing."""
        if self.stamped_ns < FEWEST_NS or self.awake_ns >= AWAKE_SHARE * self.stamped_ns:
            return None
        return Caution.ASLEEP.words()


def remembers(
    segments: Sequence[Segment], first_pass_ns: NDArray[np.int64], timed_ns: NDArray[np.int64]
) -> str | None:
    """What to warn of where steps that the contender had never seen were far slower than those that were
    timed, which come again and again: both those that were judged behind them (by CPU time) and those of
    the first pass (by the clock). Either alone says too much on a busy machine: threads that share a
    processor by chance spin through their slices, in step after step."""
    judged, _ = _cpu_ns(segments, ("judged",))
    timed, steps = _cpu_ns(segments, ("steady", "turn"))
    if not len(judged) or steps.sum() < REMEMBERS_STEPS or len(first_pass_ns) < 2:
        return None
    new_ns, known_ns = float(judged.min()), float(np.quantile(np.repeat(timed, steps), KNOWN_SHARE))
    first_ns = float(np.quantile(first_pass_ns[1:], 1 - KNOWN_SHARE))  # the very first step may compile
    if not _is_far_above(new_ns, known_ns):
        return None
    if not _is_far_above(first_ns, float(np.quantile(timed_ns, KNOWN_SHARE))):
        return None
    return Caution.REMEMBERS.words(new_ms=f"{new_ns / 1e6:.3g}", known_ms=f"{known_ns / 1e6:.3g}")


def _is_far_above(new_ns: float, known_ns: float) -> bool:
    return new_ns >= max(REMEMBERS * known_ns, known_ns + REMEMBERS_NS)


def _cpu_ns(
    segments: Sequence[Segment], kinds: Sequence[SegmentKind]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """CPU time of a step in each of these segments, and how many steps it has."""
    known = [
        (one.cpu_ns / one.steps, one.steps)
        for one in segments
        if one.kind in kinds
        if one.cpu_ns and one.steps
    ]
    times, steps = np.array(known).reshape(-1, 2).T
    return times, steps.astype(np.int64)
