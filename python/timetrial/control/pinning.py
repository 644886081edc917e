"""Which processors a contender's threads may use, changed from outside.

`affinity=each`: every thread that works gets a processor of its own, when it has worked. Who will work is not
known before: interpreters and libraries have idle threads beside those of the pool. So the busiest are taken,
as many as there are processors, at the looks before anything is timed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence

from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.habits import is_helper
from timetrial.core.observer import Thread
from timetrial.errors import MeasurementError

MOST_LOOKS = (
    10  # at threads that moved, before all of them have: helpers in other sessions go on and may fork
)


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
    """All `threads` that there are from the processors `start` to as many others. One that was bound to some
    of them is bound to those in their place; one that is bound elsewhere stays, and manners.py tells of it.
    MeasurementError: the kernel does not let us."""
    instead = dict(zip(sorted(start), sorted(target), strict=True))
    moved: set[int] = set()
    for _ in range(MOST_LOOKS):
        left = [one for one in threads() if one.tid not in moved and parse_cpus(one.allowed_cpus) <= start]
        if not left:
            return
        for one in left:
            moved.add(one.tid)
            wanted = {instead[cpu] for cpu in parse_cpus(one.allowed_cpus)}
            try:
                os.sched_setaffinity(one.tid, wanted)
            except ProcessLookupError:  # it has ended
                pass
            except OSError as error:
                there = f"the thread {one.name} to the processors {format_cpus(wanted)}"
                raise MeasurementError(f"cannot move {there}: {error.strerror}") from error
