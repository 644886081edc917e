"""`affinity=each`: every thread that works gets a processor of its own, from outside, when it has worked.

Who will work is not known before: interpreters and libraries have idle threads beside those of the pool. So
the busiest are taken, as many as there are processors, at the looks before anything is timed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from timetrial.control.habits import is_helper
from timetrial.core.observer import Thread


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
