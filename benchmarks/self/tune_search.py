"""How soon `timetrial tune` finds a good candidate: tune_search.py [WORLDS].

Each world is made up: 200 candidates (4 backends, 2 numbers of threads, two settings of 5 values), an
effect of 0 to 60 % for each value, one of about 5 % for each pair with the backend; looks at one candidate
differ by 2 %. Printed: in how many worlds the one that would be raced is within 2 % of the best there is,
after so many first looks and the finals of those; the same without finals, for candidates drawn by chance,
and for all 200, looked at as often as `timetrial run` does at least.

The time is counted in launches: a proof of each candidate takes as long as its look (twice as long, two at a
time), and the base rides in each heat.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from timetrial.cases.case import Case, Workload
from timetrial.experiment.effort import sizes
from timetrial.tuning.finals import finalists
from timetrial.tuning.search import Search
from timetrial.tuning.space import Candidate, Space
from timetrial.tuning.tuned import LOOK_SD, Trial, ranked
from timetrial.tuning.tuner import AT_ONCE

WORK = Workload("lenet5", "synthetic", 64, {"name": "sgd"})
AXES = {"backend": "abcd", "threads": "12", "one": "vwxyz", "other": "vwxyz"}
LOOKS = (12, 16, 20, 24, 28, 32)
RUN = sizes("quick").fewest_heats
WITHIN = 0.02


@dataclass
class World:
    """Candidates, what each takes as a logarithm, and looks at them."""

    space: Space
    took: dict[str, float]
    noise: random.Random

    @classmethod
    def of(cls, seed: int) -> World:
        """The world of a seed."""
        rng = random.Random(seed)
        points = [dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values())]
        space = Space([Case(one.pop("backend"), WORK, settings=one) for one in points])
        alone = {
            (name, one): rng.choice([0, 0, 0.05, 0.1, 0.3, 0.6])
            for name, some in AXES.items()
            for one in some
        }
        pairs = {(back, *item): rng.gauss(0, 0.05) for back in AXES["backend"] for item in alone}
        took = {
            one.case.id: sum(alone[item] + pairs[(one.point["backend"], *item)] for item in one.point.items())
            for one in space.candidates
        }
        return cls(space, took, random.Random(seed + 10**6))

    def look(self, name: str, times: int = 1) -> tuple[float, ...]:
        """At a candidate, by its case's id."""
        return tuple(self.took[name] + self.noise.gauss(0, LOOK_SD) for _ in range(times))

    def trial(self, one: Candidate, times: int = 1) -> Trial:
        """A candidate that was looked at."""
        return Trial(one.case.id, one.point, self.look(one.case.id, times), "ok")

    def is_good(self, trial: Trial) -> bool:
        """Whether it is within 2 % of the best there is."""
        return self.took[trial.case] - min(self.took.values()) <= math.log(1 + WITHIN)


def searched(world: World, seed: int) -> Iterator[Trial]:
    """Candidates as the search asks for them."""
    search = Search(world.space, seed)
    while chosen := search.ask(AT_ONCE):
        for one in chosen:
            trial = world.trial(one)
            search.tell(one, trial.log_ratio)
            yield trial


def by_chance(world: World, seed: int) -> Iterator[Trial]:
    """Candidates in any order."""
    for one in random.Random(seed).sample(world.space.candidates, len(world.space.candidates)):
        yield world.trial(one)


def with_finals(world: World, trials: list[Trial]) -> tuple[list[Trial], int]:
    """The same after finals, and their launches."""
    found, launches = {one.case: one for one in trials}, 0
    while chosen := finalists(list(found.values())):
        launches += 1 + len(chosen)
        for one in chosen:
            found[one.case] = replace(one, looks=one.looks + world.look(one.case))
    return list(found.values()), launches


def launches_of(candidates: int, looks: int = 1) -> int:
    """Proofs and looks of so many, with the base in each heat."""
    return candidates * (1 + looks) + math.ceil(candidates / AT_ONCE) * looks


def lines(order: Callable[[World, int], Iterator[Trial]], worlds: int) -> Iterator[str]:
    """A line for each number of first looks."""
    good = {count: [0, 0, 0] for count in LOOKS}
    for seed in range(worlds):
        world = World.of(seed)
        seen = list(itertools.islice(order(world, seed), max(LOOKS)))
        for count in LOOKS:
            first = seen[:count]
            last, launches = with_finals(world, first)
            good[count][0] += world.is_good(ranked(first)[0])
            good[count][1] += world.is_good(ranked(last)[0])
            good[count][2] += launches
    for count, (without, with_them, launches) in good.items():
        time = launches_of(count) + launches / worlds
        yield (
            f"{order.__name__:<9} {count} of 200: within 2 % {without / worlds:.0%}, with finals "
            f"{with_them / worlds:.0%}, in {time / launches_of(200, RUN):.1%} of the time of `run`, "
            f"{time / launches_of(200):.1%} of one look at each"
        )


def main() -> None:
    """Prints a line for each way."""
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for looks in (1, RUN):
        good = 0
        for seed in range(worlds):
            world = World.of(seed)
            good += world.is_good(ranked([world.trial(one, looks) for one in world.space.candidates])[0])
        print(f"all 200, {looks} looks each: within 2 % {good / worlds:.0%}")
    for order in (searched, by_chance):
        for line in lines(order, worlds):
            print(line)


if __name__ == "__main__":
    main()
