"""How hard an experiment measures: the one place that decides sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetrial.cases.spec import Effort
from timetrial.statistics.stopping import STOP_RULES, StopRule


@dataclass(frozen=True)
class Sizes:
    """What one case gets.

    Launches of a block take turns in heats. Heats are added, for all cases alike, until the median half width
    of the ratios is at most `half_width`: the intervals then hold the truth as often as with a fixed number
    (docs/statistics.md). A row that stopped by itself, because its interval looks narrow, would be one that
    was lucky, and its interval would hold the truth in 75 to 90 % instead of 95 %.

    Few cases, and launches that have the machine to themselves (`isolated`), get a fixed number of
    `launches`. Of the latter each goes on for at least `min_ns` behind its first step and until `rule` is
    satisfied, and for no longer than `budget_ns`.
    """

    launches: int  # speed launches of a case where their number is fixed, one per block
    fewest_heats: int  # of a case: blocks
    most_heats: int  # of a case
    half_width: float | None  # a fraction; None: not asked for, there are as many launches as the user said
    first_one_by_one: bool  # in the first block nobody starts beside another, which tells what a start takes
    rounds: int  # of a heat at least, each with a turn of every case; more come in blocks of as many
    turns_warmup_ns: int  # before a launch takes its turns, at most
    turns_ns: int  # of all its turns in so many rounds, at most: a slow one rides in fewer
    rule: StopRule  # of a launch that is alone, as are the next two
    min_ns: int  # of a launch that is alone, at least
    budget_ns: int  # of a launch that is alone, at most
    warmup_ns: int  # of a profile launch
    steady_ns: int  # of a profile launch: its plain steps
    learning_seeds: int  # learning launches, one seed each; only with [train]


_MS = 1_000_000
_SIZES: dict[Effort, Sizes] = {
    "quick": Sizes(
        launches=6,
        fewest_heats=4,
        most_heats=8,
        half_width=0.03,
        first_one_by_one=False,
        rounds=14,
        turns_warmup_ns=200 * _MS,
        turns_ns=4_000 * _MS,
        rule=STOP_RULES["quick"],
        min_ns=400 * _MS,
        budget_ns=1_500 * _MS,
        warmup_ns=300 * _MS,
        steady_ns=700 * _MS,
        learning_seeds=3,
    ),
    "normal": Sizes(
        launches=12,
        fewest_heats=6,
        most_heats=20,
        half_width=0.01,
        first_one_by_one=True,
        rounds=40,
        turns_warmup_ns=1_000 * _MS,
        turns_ns=8_000 * _MS,
        rule=STOP_RULES["normal"],
        min_ns=1_000 * _MS,
        budget_ns=6_000 * _MS,
        warmup_ns=1_000 * _MS,
        steady_ns=3_000 * _MS,
        learning_seeds=5,
    ),
    "rigorous": Sizes(
        launches=24,
        fewest_heats=8,
        most_heats=48,
        half_width=0.005,
        first_one_by_one=True,
        rounds=60,
        turns_warmup_ns=2_000 * _MS,
        turns_ns=20_000 * _MS,
        rule=STOP_RULES["rigorous"],
        min_ns=2_000 * _MS,
        budget_ns=20_000 * _MS,
        warmup_ns=2_000 * _MS,
        steady_ns=8_000 * _MS,
        learning_seeds=10,
    ),
}


FEWEST_TO_STOP = 5  # cases: with fewer, the median of the widths is one row's, which may be narrow by luck


@dataclass(frozen=True)
class Planned:
    """Speed launches of each case: how many, and until which half width more are added."""

    fewest: int
    most: int
    half_width: float | None  # None: their number is fixed


def planned(sizes: Sizes, cases: int, *, isolated: bool) -> Planned:
    """For so many cases that can be launched."""
    if isolated or cases < FEWEST_TO_STOP or sizes.half_width is None:
        return Planned(sizes.launches, sizes.launches, None)
    return Planned(sizes.fewest_heats, sizes.most_heats, sizes.half_width)


def sizes(effort: Effort, *, launches: int | None = None, learning_seeds: int | None = None) -> Sizes:
    """The sizes of an effort, with the numbers of launches that the user asked for instead."""
    chosen = _SIZES[effort]
    if launches is not None:
        chosen = replace(
            chosen, launches=launches, fewest_heats=launches, most_heats=launches, half_width=None
        )
    if learning_seeds is not None:
        chosen = replace(chosen, learning_seeds=learning_seeds)
    return chosen
