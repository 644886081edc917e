"""What tools that track training are given: of each case its facts, its numbers, and series along steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from timetrial.changes.findings import Finding, findings_of, record_of
from timetrial.records.metric import METRICS
from timetrial.records.reference import facts_of
from timetrial.report.numbers import first_line
from timetrial.results.names import names_of
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.results.race import Race
    from timetrial.statistics.intervals import Estimate

MOST_POINTS = 1000  # of step times of a launch: each the median of as many steps in a row
MOST_LOSSES = 10_000  # of a curve: of more steps, every second, third, ... one
_MS = 1e-6  # per ns


@dataclass(frozen=True)
class Series:
    """Numbers by step; all of them finite."""

    name: str
    steps: list[int]
    values: list[float]


@dataclass(frozen=True)
class Track:
    """A case. `facts`: what was asked of it; `numbers`: by name, with its unit in it."""

    name: str
    ok: bool
    outcome: str
    proven: bool
    facts: dict[str, str]
    numbers: dict[str, float]
    series: list[Series] = field(default_factory=list)


def tracks_of(found: Results | Race) -> list[Track]:
    """Of every case of a run, selected cases only, or side of a race."""
    names = names_of(record_of(found).cases)
    findings = findings_of(found)
    series = dict(_of_run(found) if isinstance(found, Results) else _of_race(found))
    accuracies = {}
    if isinstance(found, Results):
        accuracies = {row.case.id: row.accuracy for row in found.rows}
    return [
        Track(
            names[one.case.id],
            one.outcome == "ok",
            ": ".join(filter(None, [one.outcome or "not measured", first_line(one.reason)])),
            one.proven,
            {key: str(value) for key, value in facts_of(one.case).items() if value is not None},
            _numbers(found, one, accuracies.get(one.case.id)),
            series.get(one.case.id, []),
        )
        for one in findings
    ]


def began_s(found: Results | Race) -> float:
    """When it was measured, in seconds since 1970."""
    return datetime.fromisoformat(record_of(found).created_at).timestamp()


def _numbers(found: Results | Race, one: Finding, accuracy: Estimate | None) -> dict[str, float]:
    metric = METRICS["step_time" if isinstance(found, Results) else found.metric].column
    numbers: dict[str, float] = {}
    for name, estimate in ((metric, one.level), ("ratio", one.ratio), ("accuracy", accuracy)):
        if estimate is not None:
            numbers[name] = estimate.estimate
            bounds = {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            numbers |= {key: value for key, value in bounds.items() if value is not None}
    held = [record.memory.held for record in one.launches if record.memory.held is not None]
    if held and one.level is not None:
        numbers.setdefault(METRICS["peak_memory"].column, float(np.median(held)))
    return {key: value for key, value in numbers.items() if math.isfinite(value)}


def _of_run(results: Results) -> Iterator[tuple[str, list[Series]]]:
    by_folder = {str(one.folder): one for one in results.whole.launches}
    for row in results.rows:
        found = []
        for one in results.whole.launches:
            record = one.record
            if record.case == (row.accuracy_from or row.case.id) and record.purpose == "learning":
                steps = one.steps()
                loss = steps.loss[~steps.are("detailed", "judged")]
                done = np.array([evaluation.steps for evaluation in record.evaluations], np.int64)
                reached = np.array([evaluation.accuracy for evaluation in record.evaluations])
                found += [_curve(f"training_loss/seed {record.seed}", loss)]
                found += [_at(f"test_accuracy/seed {record.seed}", done, reached)]
        timed = [one for one in row.launches if one.record.purpose == "speed" and one.times is not None]
        for number, launch in enumerate(timed):
            assert launch.times is not None
            durations = by_folder[launch.folder].steps().duration_ns
            found += [_step_times(f"step_time_ms/launch {number}", durations, launch.times.counting)]
        yield row.case.id, [one for one in found if one.steps and row.outcome == "ok"]


def _of_race(race: Race) -> Iterator[tuple[str, list[Series]]]:
    for case in race.cases[1:]:
        values = np.exp(race.log_ratios(case.id))
        yield case.id, [_at("ratio_by_pair", np.arange(len(values)), values)] if len(values) else []


def _curve(name: str, values: npt.NDArray[np.float64]) -> Series:
    every = max(1, math.ceil(len(values) / MOST_LOSSES))
    steps = np.arange(0, len(values), every)
    return _at(name, steps, values[steps])


def _step_times(name: str, durations_ns: npt.NDArray[Any], counting: npt.NDArray[np.bool_]) -> Series:
    """Of the steps that count, in ms."""
    steps = np.flatnonzero(counting)
    parts = np.array_split(steps, min(len(steps), MOST_POINTS)) if len(steps) else []
    medians = [float(np.median(durations_ns[part])) * _MS for part in parts]
    return _at(name, np.array([part[0] for part in parts], np.int64), np.array(medians))


def _at(name: str, steps: npt.ArrayLike, values: npt.ArrayLike) -> Series:
    pairs = [
        (int(step), float(value))
        for step, value in zip(np.asarray(steps), np.asarray(values), strict=True)
        if math.isfinite(value)
    ]
    return Series(name, [step for step, _ in pairs], [value for _, value in pairs])
