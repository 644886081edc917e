"""Where contenders that ride together run, by chance: what a place does to times then shows as scatter."""

from __future__ import annotations

import random
from collections.abc import Sequence

from timetrial.cases.case import Case

LONGEST_PADDING = 4096  # bytes of environment: its size moves the stack, which moves timings (Mytkowicz 2009)


def padding(rng: random.Random) -> dict[str, str]:
    """A variable of a length that nobody chose."""
    return {"TIMETRIAL_PADDING": "x" * rng.randrange(LONGEST_PADDING)}


def processors_for(cases: Sequence[Case], rng: random.Random) -> frozenset[int] | None:
    """The same for all, as many as they have threads: the processors of a virtual machine differ, by 40 % and
    for minutes where a neighbor shares the core, and whoever waits comes back to his own. None: all are
    needed, or one of them says where it runs or not how many threads it has."""
    from timetrial.control.cpus import allowed_cpus

    settings = [case.settings for case in cases]
    if any("affinity" in one or "threads" not in one for one in settings):
        return None
    usable, count = sorted(allowed_cpus()), max(int(one["threads"]) for one in settings)
    return frozenset(rng.sample(usable, count)) if count < len(usable) else None


def start_places(processors: frozenset[int] | None, starts: int) -> tuple[frozenset[int] | None, ...]:
    """Where so many contenders start side by side that ride on the same `processors`, one after the other:
    the first there, the next on as many others of the same kind, as long as there are some. To start all of
    them on one processor takes as long as one after the other."""
    from timetrial.control.cpus import allowed_cpus
    from timetrial.control.topology import kind_of

    if processors is None or starts == 1:
        return (None,) * starts
    kinds = {kind_of(cpu) for cpu in processors}
    free = sorted(cpu for cpu in allowed_cpus() - processors if len(kinds) == 1 and kind_of(cpu) in kinds)
    size = len(processors)
    others = [frozenset(free[begin : begin + size]) for begin in range(0, len(free) - size + 1, size)]
    places = (None, *others)
    return tuple(places[number % len(places)] for number in range(starts))
