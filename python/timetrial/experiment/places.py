"""Where contenders that ride together run, by chance: what a place does to times then shows as scatter."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from timetrial.cases.case import Case
from timetrial.cases.environment import variables_of
from timetrial.control.openmp import binds_threads

if TYPE_CHECKING:
    from timetrial.experiment.validate import ReadyCase

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


def starts_on(
    processors: frozenset[int] | None, starts: int, rng: random.Random
) -> tuple[frozenset[int] | None, ...]:
    """On which processors so many contenders start side by side that ride on these `processors`, one after
    the other. None: where they ride. Where these are one, two would take as long as one after the other: so
    the first starts there, the next on others of the same kind, as long as there are some. Several are room
    enough, and what a library learns of them as it starts (how many cores) must be the same for all."""
    from timetrial.control.cpus import allowed_cpus
    from timetrial.control.topology import kind_of

    if processors is None or len(processors) > 1 or starts == 1:
        return (None,) * starts
    [own] = processors
    others = [cpu for cpu in sorted(allowed_cpus() - processors) if kind_of(cpu) == kind_of(own)]
    rng.shuffle(others)
    chosen = (None, *(frozenset({cpu}) for cpu in others))
    return tuple(chosen[number % len(chosen)] for number in range(starts))


def may_start_beside(one: ReadyCase, environment: Collection[str]) -> bool:
    """Whether others may start at the same time: not beside a native contender, which may choose between
    kernels by the clock as it starts, nor beside one that binds its threads by the processors that it finds
    then. `environment`: names of the variables that launches get."""
    is_native = one.contender is not None and one.contender.kind == "native"
    settings = one.case.settings
    return not is_native and not binds_threads({*settings, *variables_of(settings), *environment})
