"""What can be chosen: the cases of an experiment, and what they differ in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timetrial.analysis.taken_home import contender_of
from timetrial.cases.case import Case
from timetrial.errors import InputError
from timetrial.records.metric import Metric

DEFAULT = "-"  # the value of a setting that is not asked for
BATCH_SIZE = "batch_size"


@dataclass(frozen=True)
class Candidate:
    """One way to do the work."""

    case: Case
    point: Mapping[str, str]  # what may be chosen -> its value here; DEFAULT: not asked for

    def contender(self) -> dict[str, Any]:
        """It, as a [[contender]] of an experiment."""
        own = {BATCH_SIZE: self.case.workload.batch_size} if BATCH_SIZE in self.point else {}
        return {**contender_of(self.case.backend, self.case.task, self.case.settings), **own}


class Space:
    """All candidates; the first is the base, which a winner must beat."""

    def __init__(self, cases: Sequence[Case]):
        if len({_work(one) for one in cases}) > 1:
            raise InputError(
                "tune compares ways of doing one piece of work, and network, data set, optimizer or task "
                f"differ between these {len(cases)} cases. Tune each on its own"
            )
        facts = [
            {"backend": one.backend, BATCH_SIZE: one.workload.batch_size, **one.settings} for one in cases
        ]
        names = list(dict.fromkeys(name for each in facts for name in each))
        choices = {
            name: list(dict.fromkeys(str(each.get(name, DEFAULT)) for each in facts)) for name in names
        }
        #: What differs -> its values, in the order in which they were asked for.
        self.choices: dict[str, list[str]] = {name: some for name, some in choices.items() if len(some) > 1}
        points = [{name: str(each.get(name, DEFAULT)) for name in self.choices} for each in facts]
        self.candidates = [Candidate(case, point) for case, point in zip(cases, points, strict=True)]
        if len({tuple(one.point.values()) for one in self.candidates}) < 2:
            raise InputError(
                "there is nothing to tune: one case alone. Give a key several values, the one you use now "
                "first: timetrial tune network=lenet5 backend=eigen,onednn threads=1,2"
            )
        self._found: dict[tuple[str, ...], Candidate | None] = {}

    @property
    def metric(self) -> Metric:
        """What is compared: samples per second where batch sizes differ."""
        return "samples_per_s" if BATCH_SIZE in self.choices else "step_time"

    def samples(self, candidate: Candidate) -> int:
        """By which a step's time is to be divided, to be comparable."""
        return (candidate.case.workload.batch_size or 1) if BATCH_SIZE in self.choices else 1

    @property
    def base(self) -> Candidate:
        """What is done now, unless something better is found."""
        return self.candidates[0]

    def find(self, point: Mapping[str, str]) -> Candidate | None:
        """The candidate that a choice means: what its backend does not have does not count."""
        key = tuple(point[name] for name in self.choices)
        if key not in self._found:
            self._found[key] = next((one for one in self.candidates if _means(one.point, point)), None)
        return self._found[key]

    def values_of(self, name: str, beside: Candidate) -> list[Candidate]:
        """One candidate for each value of a choice, else as `beside` or as much like it as there is."""
        found = {}
        for value in self.choices[name]:
            point = {**beside.point, name: value}
            one = self.find(point) or max(
                (one for one in self.candidates if one.point[name] == value),
                key=lambda one: sum(one.point[key] == word for key, word in point.items()),
            )
            found[one.case.id] = one
        return list(found.values())


def _work(case: Case) -> tuple[str, str, str, str]:
    """A batch size changes how fast samples are learned from, and steps cannot be compared: samples can."""
    work = case.workload
    return work.network, work.dataset, json.dumps(dict(work.optimizer), sort_keys=True), case.task


def _means(candidate: Mapping[str, str], point: Mapping[str, str]) -> bool:
    return all(value in (DEFAULT, point[name]) for name, value in candidate.items())
