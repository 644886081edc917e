"""Asks every check, in random order, so that slow drifts of the machine meet all of them."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from timetrial.errors import TimetrialError
from timetrial.experiment.cases import usable_cpus
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.progress import progress
from timetrial.races import Side, run_race
from timetrial.races.side import experiment_of
from timetrial.selfcheck.checks import CHECKS, Check
from timetrial.selfcheck.tally import Seen, Tally, upper_bound


class SelfCheckInterrupted(KeyboardInterrupt):
    """Ctrl-C: every contender is gone; `found` counts the races that had ended."""

    def __init__(self, found: SelfCheck):
        super().__init__("interrupted")
        self.found = found


class Equals(NamedTuple):
    """Verdicts between equals: how many, how many of them false, and the upper bound of that rate."""

    judged: int
    false: int
    false_at_most: float


@dataclass(frozen=True)
class SelfCheck:
    """All tallies, and where the races lie."""

    tallies: list[Tally]
    folder: Path
    seconds: float
    planned: int  # races; fewer were run if it was interrupted
    left_out: list[str]  # checks that this machine cannot run, and why

    @property
    def races(self) -> int:
        """That were run."""
        return sum(len(one.races) for one in self.tallies)

    @property
    def equals(self) -> Equals:
        """All races of equals together: one check alone has too few for a narrow bound."""
        judged = [one for tally in self.tallies if tally.check.is_equal for one in tally.judged]
        false = sum(one.verdict in ("better", "worse") for one in judged)
        return Equals(len(judged), false, upper_bound(false, len(judged)))

    @property
    def faults(self) -> list[str]:
        """What is worse than promised."""
        return [f"{one.check.name}: {words}" for one in self.tallies for words in one.faults]

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial self-check --json`."""
        return {
            "schema_version": 1,
            "seconds": self.seconds,
            "records": str(self.folder),
            "planned": self.planned,
            "left_out": self.left_out,
            "faults": self.faults,
            "equals": self.equals._asdict(),
            "checks": [
                {
                    "name": one.check.name,
                    "effect": one.check.effect,
                    "races": len(one.races),
                    "judged": len(one.judged),
                    "false": one.false,
                    "false_at_most": one.false_at_most,
                    "found": None if one.check.is_equal else one.found,
                    "found_at_least": None if one.check.is_equal else one.found_at_least,
                    "inconclusive": one.inconclusive,
                    "estimate": one.estimate,
                    "seen": [vars(race) for race in one.races],
                }
                for one in self.tallies
            ],
        }


def self_check(
    results: Path,
    *,
    full: bool = False,
    seed: int = 1,
    quiet: bool = False,
    engine: Engine | None = None,
    checks: Sequence[Check] = CHECKS,
) -> SelfCheck:
    """Runs the checks; a few of each, or with `full` as many as the promised rates need.

    Raises SelfCheckInterrupted on Ctrl-C.
    """
    engine = engine or real_engine()
    began = time.monotonic()
    cpus = usable_cpus()
    left_out = [f"{one.name}: {cpus} CPU" for one in checks if one.threads > cpus]
    checks = [one for one in checks if one.threads <= cpus]
    order = [check for check in checks for _ in range(check.full if full else check.quick)]
    random.Random(seed).shuffle(order)
    folder = results / f"self-check-{time.strftime('%Y%m%d-%H%M%S')}"
    seen: dict[str, list[Seen]] = {check.name: [] for check in checks}

    def found() -> SelfCheck:
        tallies = [Tally(check, seen[check.name]) for check in checks]
        return SelfCheck(tallies, folder, time.monotonic() - began, len(order), left_out)

    # One lock for all of them: somebody else's measurement between two races would be refused to us.
    inner = replace(engine, lock=contextlib.nullcontext)
    try:
        with engine.lock(), progress(quiet=quiet) as bar:
            bar.total(len(order))
            for number, check in enumerate(order):
                bar.next(check.name)
                seen[check.name].append(_race(check, folder, seed + number, inner))
                bar.done(None)
    except KeyboardInterrupt:
        raise SelfCheckInterrupted(found()) from None
    return found()


def _race(check: Check, folder: Path, seed: int, engine: Engine) -> Seen:
    """Without confirmation: what is counted is the error rate of a single race."""
    used, end = check.disturbed(engine) if check.disturbed else (engine, None)
    common = {"threads": check.threads}
    sides = [Side({**common, **side}) for side in check.sides]
    try:
        found = run_race(experiment_of(sides, {}, seed), folder, confirm=False, quiet=True, engine=used)
    except TimetrialError as error:  # two hours of races are not given up for one
        return Seen(None, None, 0, 0.0, str(error))
    finally:
        if end is not None:
            end()
    duel = found.worst
    effect = None if duel.effect is None else duel.effect.estimate
    return Seen(duel.verdict, effect, duel.pairs, found.seconds or 0.0, duel.reason)
