"""Asks every check, in random order, so that slow drifts of the machine meet all of them.

results/self-check-<date>/self-check.json   what was asked: with it an interrupted one goes on
results/self-check-<date>/<id>/             one race each; its seed says which of the order it was
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from timetrial.cases.cases import usable_cpus
from timetrial.errors import InputError, TimetrialError
from timetrial.experiment.engine import Engine, real_engine
from timetrial.paths import user_path
from timetrial.progress import progress
from timetrial.races import Race, Side, run_race
from timetrial.races.side import experiment_of
from timetrial.records import store
from timetrial.records.files import write_once
from timetrial.records.model import Model
from timetrial.records.race import is_race
from timetrial.selfcheck.checks import CHECKS, Check
from timetrial.selfcheck.tally import Seen, Tally, upper_bound

_ASKED = "self-check.json"


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


class Asked(Model):
    """self-check.json."""

    seed: int
    full: bool


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
    store.check_writable(results)
    folder = _new_folder(results)
    write_once(folder / _ASKED, store.to_bytes(Asked(seed=seed, full=full)))
    return go_on(folder, quiet=quiet, engine=engine, checks=checks)


def _new_folder(results: Path) -> Path:
    name = f"self-check-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = results / name, 1
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            folder = results / f"{name}-{number}"
        else:
            return folder


def go_on(
    folder: Path, *, quiet: bool = False, engine: Engine | None = None, checks: Sequence[Check] = CHECKS
) -> SelfCheck:
    """Runs what is left of the checks of this folder.

    Raises InputError for another folder, SelfCheckInterrupted on Ctrl-C.
    """
    if not (user_path(folder) / _ASKED).is_file():
        raise InputError(f"'{folder}' is no self-check: it has no {_ASKED}.")
    asked = store.read_record(folder / _ASKED, Asked)
    engine = engine or real_engine()
    began = time.monotonic()
    cpus = usable_cpus()
    left_out = [f"{one.name}: {cpus} CPU" for one in checks if one.threads > cpus]
    checks = [one for one in checks if one.threads <= cpus]
    order = [check for check in checks for _ in range(check.full if asked.full else check.quick)]
    random.Random(asked.seed).shuffle(order)
    done = _races_of(folder, asked.seed, order)
    seen: dict[str, list[Seen]] = {check.name: [] for check in checks}
    for number, race in done.items():
        seen[order[number].name].append(_seen(race))
    before_s = sum(race.seconds or 0 for race in done.values())

    def found() -> SelfCheck:
        tallies = [Tally(check, seen[check.name]) for check in checks]
        seconds = before_s + time.monotonic() - began
        return SelfCheck(tallies, folder, seconds, len(order), left_out)

    # One lock for all of them: somebody else's measurement between two races would be refused to us.
    # Each has a seed of its own, so no proof would serve twice.
    inner = replace(engine, lock=contextlib.nullcontext, keeper=engine.keeper.none())
    try:
        with engine.lock(), progress(quiet=quiet) as bar:
            bar.total(len(order) - len(done))
            for number, check in enumerate(order):
                if number in done:
                    continue
                bar.next(check.name)
                seen[check.name].append(_race(check, folder, asked.seed + number, inner))
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
    return _seen(found)


def _seen(race: Race) -> Seen:
    duel = race.worst
    effect = None if duel.effect is None else duel.effect.estimate
    return Seen(duel.verdict, effect, duel.pairs, race.seconds or 0.0, duel.reason)


def _races_of(folder: Path, seed: int, order: Sequence[Check]) -> dict[int, Race]:
    """By their place in the order: the races that ended."""
    found = {}
    for path in sorted(folder.iterdir()):
        race = Race(path) if is_race(path) else None
        if race is None or race.end is None or race.end.stop_reason == "interrupted":
            continue
        number = race.record.experiment.seed - seed
        words = [case.backend for case in race.cases]
        if not 0 <= number < len(order) or words != [
            side.get("backend", side.get("callable")) for side in order[number].sides
        ]:
            raise InputError(f"'{folder}' is of another version of timetrial, whose checks were others.")
        found[number] = race
    return dict(sorted(found.items()))
