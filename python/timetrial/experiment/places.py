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
