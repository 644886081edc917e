"""What earlier races on this machine say of the next: how their pairs scattered, and what a pair took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from timetrial.analysis.outlook import pair_scatter
from timetrial.cases.keys import is_callable_word
from timetrial.errors import InputError
from timetrial.records import store
from timetrial.records.race import is_race, read_pairs, read_race

RECENT = 20  # races that are read, the newest first
_MACHINE = ("cpu", "cpus", "usable_cpus")


@dataclass(frozen=True)
class Pace:
    """Medians over races."""

    scatter: float  # standard deviation of ln(ratio) between pairs
    pair_s: float  # seconds that a pair takes
    races: int


def pace_of(results: Path, machine: Mapping[str, Any], backends: list[str]) -> Pace | None:
    """Of the newest races under `results` on a machine like this one: those of the same `backends`, or else
    those that have, as these, steps of somebody's own, or none. None: there is no such race."""
    seen = []
    folders = store.newest_first(results) if results.is_dir() else []
    for folder in [one for one in folders if is_race(one)][:RECENT]:
        try:
            record, (pairs, _) = read_race(folder), read_pairs(folder)
        except InputError:
            continue
        there = record.experiment.machine
        counting = [one for one in pairs if one.void is None and one.seconds is not None]
        if not counting or any(there.get(key) != machine.get(key) for key in _MACHINE):
            continue
        cases = record.experiment.cases
        scatters = [
            pair_scatter(own, case.id)
            for case in cases[1:]
            if (own := [one for one in counting if case.id in one.log_ratios])
        ]
        if scatters:
            named = sorted({case.backend for case in cases})
            seen.append((named, max(scatters), median(one.seconds or 0.0 for one in counting)))
    wanted = sorted(set(backends))
    same = [one for one in seen if one[0] == wanted]
    alike = same or [one for one in seen if _has_own(one[0]) == _has_own(wanted)]
    if not alike:
        return None
    return Pace(median(one[1] for one in alike), median(one[2] for one in alike), len(alike))


def _has_own(backends: list[str]) -> bool:
    return any(map(is_callable_word, backends))
