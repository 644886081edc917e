"""Races: which of two ways of doing the same work is better, and is the difference real?

    tt.race("eigen", "onednn", network="lenet5", threads=1)
    tt.race(make_before, make_after)                    # functions; "package.module:make_step" is one too
    tt.race("package.module:make_step", against="main")     # as it is now, and as it is in a revision
    tt.race(results.sel(backend="pytorch"), results.sel(backend="onednn"))     # measures anew

The first side is the base. Both are alive together and take turns, whoever waits is stopped; a pair of
launches gives one number; after 4, 6, 8, 11, 16 and 24 pairs a rule decides (statistics/verdict.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timetrial.races.racing import RaceInterrupted, RaceStoppedError, resume_race, run_race
from timetrial.races.side import AnySide, Side, experiment_of, sides_of
from timetrial.races.side import against as against_revision
from timetrial.records.metric import Metric
from timetrial.results.race import Duel, Race
from timetrial.statistics.verdict import DIFFERENT, Rule, Verdict

__all__ = [
    "Duel",
    "Race",
    "RaceInterrupted",
    "RaceStoppedError",
    "Rule",
    "Side",
    "race",
    "resume_race",
    "run_race",
]


def race(
    *sides: AnySide | Sequence[AnySide],
    metric: Metric = "step_time",
    rule: Rule | None = None,
    results: str | Path = "results",
    seed: int = 1,
    confirm: bool = True,
    confirms: Sequence[Verdict] = DIFFERENT,
    isolated: bool = False,
    against: str | None = None,
    base_setup: str | None = None,
    prove_again: bool = False,
    quiet: bool = False,
    **keys: Any,
) -> Race:
    """Races two or more sides; each against the first.

    A side: a function that makes a step (of a notebook too), its word "package.module:make_step", a backend's
    name, a Side, a mapping of keys, results of one row, or a list of these.
    `keys` hold for all sides: network="lenet5", threads=1. `metric`: of RACED in
    records/metric.py; with samples_per_s batch sizes may differ. `confirm`: a verdict of `confirms` is raced
    once more before it is said.
    `isolated`: whole launches in alternation instead of turns. `against`: a revision of git's, or the path of
    another checkout, whose step is the base of the one side; `base_setup`: the command that installs it, for
    an interpreter of its own. `prove_again`: no proof of an earlier run counts. Raises InputError for what
    cannot be a race.
    """
    experiment = experiment_of(sides_of(sides), keys, seed)
    if against is not None:
        experiment = against_revision(experiment, against, base_setup)
    return run_race(
        experiment,
        Path(results),
        metric=metric,
        rule=rule,
        confirm=confirm,
        confirms=confirms,
        isolated=isolated,
        prove_again=prove_again,
        quiet=quiet,
    )
