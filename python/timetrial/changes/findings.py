"""What a run and a race say about each of their cases, in one shape: what is compared, and kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from timetrial.analysis.ratios import with_ratios
from timetrial.records.model import CaseRecord, ExperimentRecord, LaunchRecord
from timetrial.records.reference import facts_of
from timetrial.report.table import shown
from timetrial.results.results import Results
from timetrial.statistics.intervals import Estimate, positive_location

if TYPE_CHECKING:
    from timetrial.analysis.summary import Row
    from timetrial.results.race import Duel, Race

Key = tuple[tuple[str, str], ...]  # what a case is, as far as it was asked


@dataclass(frozen=True)
class Finding:
    """A case of a run, or a side of a race. None: it has none, and `reason` may say why."""

    case: CaseRecord  # what was asked
    outcome: str | None  # None: not measured
    reason: str | None  # why it is not ok, in words
    level: Estimate | None = None  # the metric, in its unit
    ratio: Estimate | None = None  # to the case `against`, from launches that were alive together
    against: CaseRecord | None = None  # its reference, or the base of its race; None: there is none
    proven: bool = False  # whether it was shown to compute what it should
    verdict: str | None = None  # of a race
    accuracy: Estimate | None = None  # 0 to 1; over seeds and images
    launches: list[LaunchRecord] = field(default_factory=list)  # those it stands on

    @property
    def key(self) -> Key:
        """Equal for equal cases of any two experiments."""
        return key_of(self.case)


def key_of(case: CaseRecord) -> Key:
    """A function that was carried out of a session goes by its name: its word changes with its content."""
    facts = {**facts_of(case), "backend": case.who}
    return tuple(sorted((key, str(value)) for key, value in facts.items() if value is not None))


def record_of(found: Results | Race) -> ExperimentRecord:
    """What was asked."""
    return found.experiment if isinstance(found, Results) else found.record.experiment


def findings_of(found: Results | Race, reference: Mapping[str, Any] | None = None) -> list[Finding]:
    """In the order of the cases. `reference`: what the ratios of a run are taken against, unless it is its
    own reference."""
    if not isinstance(found, Results):
        return _of_race(found)
    rows = found.all_rows
    if reference is not None and reference != found.reference:
        rows = with_ratios(rows, reference)
    by_id = {row.case.id: row for row in rows}
    selected = {row.case.id for row in found.rows}
    return [_of_row(row, by_id) for row in rows if row.case.id in selected]


def _of_row(row: Row, by_id: Mapping[str, Row]) -> Finding:
    base = by_id.get(row.reference or "")
    against = base.case if base is not None and base is not row else None
    is_ok = row.outcome == "ok" and row.step_time_ns is not None
    return Finding(
        row.case,
        row.outcome,
        row.reason,
        row.step_time_ns if is_ok else None,
        row.ratio if is_ok and against is not None else None,
        against,
        shown(row).is_proven,
        None,
        row.accuracy if is_ok else None,
        [one.record for one in row.launches if one.record.purpose == "speed"],
    )


def _of_race(race: Race) -> list[Finding]:
    duels: dict[str, Duel] = {duel.case: duel for duel in race.duels}
    found = []
    for case in race.cases:
        duel, parity, level = duels.get(case.id), race.parity(case.id), race.level(case.id)
        ratio = None
        if duel is not None and duel.effect is not None:
            ratio = positive_location([math.exp(value) for value in duel.log_ratios])
        reason = case.unavailable or (duel.reason if duel is not None and duel.verdict is None else None)
        found.append(
            Finding(
                case,
                "ok" if level is not None else "unavailable" if case.unavailable else None,
                reason,
                level,
                ratio,
                race.cases[0] if duel is not None else None,
                parity is not None and parity.status == "passed",
                duel.verdict if duel is not None else None,
                None,
                [one.record for one in race.launches[case.id]],
            )
        )
    return found
