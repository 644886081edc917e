"""Which processors a contender's threads may use, changed from outside.

`affinity=each`: every thread that works gets a processor of its own, when it has worked. Who will work is not
known before: interpreters and libraries have idle threads beside those of the pool. So the busiest are taken,
as many as there are processors, at the looks before anything is timed.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Sequence

from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.habits import is_helper
from timetrial.core.observer import Thread
from timetrial.errors import MeasurementError

# Until nothing is left: what is in a session of its own goes on, and may begin more.
MOST_LOOKS = 10


def pin(threads: Iterable[Thread], helpers: Sequence[str], cpus: frozenset[int]) -> None:
    """One each to the busiest; a thread that has one keeps it."""
    own = [one for one in threads if not is_helper(one.name, helpers)]
    busiest = sorted(own, key=lambda one: -one.cpu_ns)[: len(cpus)]
    free = {str(cpu) for cpu in cpus}
    homeless = []
    for one in busiest:
        if one.allowed_cpus in free:
            free.remove(one.allowed_cpus)
        else:
            homeless.append(one)
    for one, cpu in zip(homeless, sorted(free, key=int), strict=False):  # there may be fewer threads
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(one.tid, {int(cpu)})


def move(threads: Callable[[], Iterable[Thread]], start: frozenset[int], target: frozenset[int]) -> None:
    """Those of the `threads` that may use nothing but the processors `start` to those of `target`. One that
    is bound elsewhere stays, and so does one that the kernel does not let us move: manners.py tells of both.
    MeasurementError: these processors cannot be had."""
    moved: set[int] = set()
    for _ in range(MOST_LOOKS):
        left = [one.tid for one in threads() if one.tid not in moved and _is_within(one, start)]
        if not left:
            return
        for tid in left:
            moved.add(tid)
            try:
                os.sched_setaffinity(tid, target)
            except OSError as error:  # it has ended, or is somebody else's
                if error.errno == errno.EINVAL:
                    there = format_cpus(target)
                    words = f"cannot move a contender to the processors {there}: {error.strerror}"
                    raise MeasurementError(words) from error


def _is_within(thread: Thread, cpus: frozenset[int]) -> bool:
    """Not where the kernel does not say what it may use."""
    return bool(thread.allowed_cpus) and parse_cpus(thread.allowed_cpus) <= cpus
