"""What formats with one line per case are made of: a name, and its numbers or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from timetrial.analysis.pairs import turns_of
from timetrial.analysis.summary import Row
from timetrial.records.metric import Metric
from timetrial.records.model import CaseRecord, ExperimentRecord, LaunchRecord
from timetrial.report.numbers import first_line
from timetrial.report.table import shown
from timetrial.results.names import names_of
from timetrial.results.results import Results
from timetrial.statistics.intervals import Estimate

if TYPE_CHECKING:
    from timetrial.results.race import Race


@dataclass(frozen=True)
class Line:
    """A case of a run, or a side of a race."""

    name: str
    failure: str | None  # why it has no numbers, in one line
    proven: bool
    values: dict[Metric, Estimate]  # in ns, 1/s and bytes; empty where it failed
    launches: int = 0
    steps: int = 0
    cpus_used: float | None = None
    threads: int | None = None  # as asked
    remark: str = ""  # of a race: what was decided


@dataclass(frozen=True)
class Sheet:
    """All lines, and the record that they are from."""

    record: ExperimentRecord
    lines: list[Line]
    frequency_hz: float | None  # the highest that a launch saw; None: nobody could read it


def sheet_of(found: Results | Race) -> Sheet:
    """The lines of a run, selected cases only, or of a race."""
    if isinstance(found, Results):
        names = names_of(found.experiment.cases)
        lines = [_of_row(row, names[row.case.id]) for row in found.rows]
        launches = [one.record for one in found.launches]
        return Sheet(found.experiment, lines, _frequency_hz(launches))
    names = names_of(found.cases)
    lines = [_of_side(found, case, names[case.id]) for case in found.cases]
    launches = [one.record for case in found.cases for one in found.launches[case.id]]
    return Sheet(found.record.experiment, lines, _frequency_hz(launches))


def left_out(found: Results | Race) -> list[str]:
    """'name: why' of each line that has no numbers."""
    return [f"{line.name}: {line.failure}" for line in sheet_of(found).lines if line.failure is not None]


def _of_row(row: Row, name: str) -> Line:
    proven = shown(row).is_proven
    if row.outcome != "ok" or row.step_time_ns is None:
        outcome = "no step time" if row.outcome == "ok" else row.outcome or "not measured"
        reason = first_line(row.reason)
        return Line(name, f"{outcome}: {reason}" if reason else outcome, proven, {})
    values: dict[Metric, Estimate] = {"step_time": row.step_time_ns}
    if row.samples_per_s is not None:
        values["samples_per_s"] = row.samples_per_s
    if row.peak_memory_bytes is not None:
        # A median over launches, which comes without an interval.
        values["peak_memory"] = Estimate(row.peak_memory_bytes, None, None, row.ok, "single value")
    steps = row.distribution.steps if row.distribution else 0
    return Line(name, None, proven, values, row.step_time_ns.n, steps, row.cpus_used, _threads(row.case))


def _of_side(race: Race, case: CaseRecord, name: str) -> Line:
    parity, level = race.parity(case.id), race.level(case.id)
    proven = parity is not None and parity.status == "passed"
    duel = next((one for one in race.duels if one.case == case.id), None)
    if level is None:
        why = case.unavailable or (duel.reason if duel else None) or (race.end.reason if race.end else None)
        return Line(name, first_line(why) or "no pair counts", proven, {})
    remark = "base"
    if duel is not None and duel.verdict is None:
        remark = f"not judged: {first_line(duel.reason)}"
    elif duel is not None:
        remark = f"{duel.verdict} against the base"
    steps = sum(len(turn) for one in race.launches[case.id] for turn in turns_of(one.steps()))
    values: dict[Metric, Estimate] = {race.record.metric: level}
    launches = len(race.values(case.id))
    used = [one.record.witnesses.get("cpus_used") for one in race.launches[case.id]]
    known = [one for one in used if one is not None]
    cpus = median(known) if known else None
    return Line(name, None, proven, values, launches, steps, cpus, _threads(case), remark)


def _threads(case: CaseRecord) -> int | None:
    words = str(case.axes.get("threads"))
    return int(words) if words.isdecimal() else None


def _frequency_hz(launches: list[LaunchRecord]) -> float | None:
    seen = [one.witnesses.get("frequency_hz") for one in launches]
    return max((one for one in seen if one is not None), default=None)
