"""What earlier races on this machine say of the next: how their pairs scattered, and what a pair took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from timetrial.analysis.outlook import pair_scatter
from timetrial.cases.case import Case
from timetrial.cases.keys import is_callable_word
from timetrial.errors import InputError
from timetrial.records import store
from timetrial.records.race import is_race, read_pairs, read_race

RECENT = 20  # races that are read, the newest first
_MACHINE = ("cpu", "cpus", "usable_cpus")


@dataclass(frozen=True)
class Work:
    """What sides do, as far as the time of a pair depends on it."""

    backends: frozenset[str]
    networks: frozenset[tuple[str, int | None, str]]  # with batch size and task

    @property
    def is_own(self) -> bool:
        """Whether a step of somebody's own is among them."""
        return any(map(is_callable_word, self.backends))


@dataclass(frozen=True)
class Pace:
    """Medians over races."""

    scatter: float  # standard deviation of ln(ratio) between pairs
    pair_s: float | None  # seconds that a pair takes; None: no race did the same work
    races: int


def work_of(cases: Sequence[Case]) -> Work:
    """Of cases that may be raced."""
    works = [one.workload for one in cases]
    networks = {(work.network, work.batch_size, one.task) for work, one in zip(works, cases, strict=True)}
    return Work(frozenset(one.backend for one in cases), frozenset(networks))


def pace_of(results: Path, machine: Mapping[str, Any], work: Work) -> Pace | None:
    """Of the newest races of times under `results` on a machine like this one: those of the same work, or
    else those that have, as these sides, steps of somebody's own, or none. None: there is no such race."""
    seen: list[tuple[Work, float, float]] = []
    folders = store.newest_first(results) if results.is_dir() else []
    for folder in [one for one in folders if is_race(one)][:RECENT]:
        try:
            record, (pairs, _) = read_race(folder), read_pairs(folder)
        except InputError:
            continue
        there, counting = record.experiment.machine, [one for one in pairs if one.seconds is not None]
        is_here = all(there.get(key) == machine.get(key) for key in _MACHINE)
        is_alike = is_here and not record.isolated and record.metric != "peak_memory"
        scatters = [
            pair_scatter(own, case.id, record.rule.gate)
            for case in record.experiment.cases[1:]
            if (own := [one for one in counting if case.id in one.log_ratios])
        ]
        if is_alike and scatters:
            cases = record.experiment.cases
            networks = frozenset((case.network, case.batch_size, case.task) for case in cases)
            raced = Work(frozenset(case.backend for case in cases), networks)
            seen.append((raced, max(scatters), median(one.seconds or 0.0 for one in counting)))
    same = [one for one in seen if one[0] == work]
    alike = same or [one for one in seen if one[0].is_own == work.is_own]
    if not alike:
        return None
    scatter = median(scatter for _, scatter, _ in alike)
    return Pace(scatter, median(pair_s for _, _, pair_s in same) if same else None, len(alike))
