"""How soon `timetrial tune` finds a good candidate: tune_search.py [WORLDS].

Each world is made up: 200 candidates (4 backends, 2 numbers of threads, two settings of 5 values), an
effect of 0 to 60 % for each value, one of about 5 % for each pair with the backend, measured with 2 % of
noise. Printed: in how many worlds the best of the first 16, 20 and 30 is within 2 % of the best there is,
and within 5 %, and the same for as many drawn by chance.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator

from timetrial.cases.case import Case, Workload
from timetrial.tuning.search import Search
from timetrial.tuning.space import Candidate, Space

WORK = Workload("lenet5", "synthetic", 64, {"name": "sgd"})
AXES = {"backend": "abcd", "threads": "12", "one": "vwxyz", "other": "vwxyz"}
LOOKS = (16, 20, 30)
NOISE = 0.02


def world(seed: int) -> tuple[Space, dict[str, float]]:
    """The candidates, and what each takes, as a logarithm."""
    rng = random.Random(seed)
    points = [dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values())]
    space = Space([Case(one.pop("backend"), WORK, settings=one) for one in points])
    alone = {
        (name, one): rng.choice([0, 0, 0.05, 0.1, 0.3, 0.6]) for name, some in AXES.items() for one in some
    }
    pairs = {(back, *item): rng.gauss(0, 0.05) for back in AXES["backend"] for item in alone}
    took = {
        one.case.id: sum(alone[item] + pairs[(one.point["backend"], *item)] for item in one.point.items())
        for one in space.candidates
    }
    return space, took


def searched(space: Space, took: dict[str, float], seed: int) -> Iterator[tuple[Candidate, float]]:
    """Candidates as the search asks for them, with what was measured."""
    search, noise = Search(space, seed), random.Random(seed)
    while chosen := search.ask(1):
        measured = took[chosen[0].case.id] + noise.gauss(0, NOISE)
        search.tell(chosen[0], measured)
        yield chosen[0], measured


def by_chance(space: Space, took: dict[str, float], seed: int) -> Iterator[tuple[Candidate, float]]:
    """Candidates in any order."""
    noise = random.Random(seed)
    for one in noise.sample(space.candidates, len(space.candidates)):
        yield one, took[one.case.id] + noise.gauss(0, NOISE)


def behind(order: Callable[..., Iterator[tuple[Candidate, float]]], seed: int) -> list[float]:
    """By how much the best of the first so many misses the best there is."""
    space, took = world(seed)
    seen = list(itertools.islice(order(space, took, seed), max(LOOKS)))
    found = [min(seen[:count], key=lambda one: one[1])[0] for count in LOOKS]
    return [took[one.case.id] - min(took.values()) for one in found]


def main() -> None:
    """Prints a line for each way."""
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for order in (searched, by_chance):
        missed = [behind(order, seed) for seed in range(worlds)]
        for count, each in zip(LOOKS, zip(*missed, strict=True), strict=True):
            shares = [sum(one <= limit for one in each) / worlds for limit in (0.02, 0.05)]
            print(
                f"{order.__name__:<9} {count} of 200: within 2 % {shares[0]:.0%}, within 5 % {shares[1]:.0%}"
            )


if __name__ == "__main__":
    main()
