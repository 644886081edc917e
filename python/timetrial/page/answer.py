"""The answer of a run in a sentence. It claims no more than the intervals and the proofs do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from timetrial.analysis.ratios import SAME_WORK
from timetrial.analysis.summary import Row
from timetrial.cases.case import NO_NETWORK
from timetrial.figures.plots_data import case_labels
from timetrial.report.numbers import duration, plus_minus, ratio_words
from timetrial.report.table import proof_state, shown
from timetrial.results.results import Results


def answers(results: Results) -> list[str]:
    """One sentence for each kind of work: times of different work are not compared."""
    timed = [row for row in results.rows if row.outcome == "ok" and row.step_time_ns is not None]
    failed = Counter(row.outcome or "not measured" for row in results.rows if row not in timed)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in failed.items())
    if not timed:
        return [f"Nothing could be measured: {counts}."]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in timed:
        work = tuple(repr(getattr(row.case, key)) for key in SAME_WORK)
        groups.setdefault(work, []).append(row)
    said = [f"{_work(rows) if len(groups) > 1 else ''}{_answer(rows)}" for rows in groups.values()]
    return [*said, *([f"Without a step time: {counts}."] if counts else [])]


def _work(rows: list[Row]) -> str:
    case = rows[0].case
    words = [word for word in (case.network, case.dataset) if word != NO_NETWORK]
    words += [f"batch {case.batch_size}"] if case.batch_size is not None else []
    return f"{', '.join([*words, case.task])}: "


def _answer(rows: list[Row]) -> str:
    names = {row.case.id: f"`{name}`" for row, name in zip(rows, case_labels(rows), strict=True)}
    ranked = sorted(rows, key=lambda row: row.step_time_ns.estimate if row.step_time_ns else 0.0)
    first, rest = ranked[0], ranked[1:]
    name, took = names[first.case.id], _took(first)
    if not rest:
        return f"{name} takes {took} a step; there is nothing to compare it with."
    if not _can_be_told(first, rest):
        return (
            f"Which of {len(rows)} is the fastest cannot be told: too few launches. The shortest step is "
            f"that of {name}, {took}.{_proofs(rows)}"
        )
    alike = [names[row.case.id] for row in rest if _alike(first, row)]
    if alike:
        others = ", ".join(alike)
        return (
            f"{name} has the shortest step of {len(rows)}, {took}, but cannot be told apart from {others}."
            f"{_proofs(rows)}"
        )
    proven = all(shown(row).is_proven for row in rows)
    place = "is the fastest" if proven else "has the shortest step"
    return f"{name} {place} of {len(rows)}, {took}{_versus(first, rest, names)}.{_proofs(rows)}"


def _took(row: Row) -> str:
    assert row.step_time_ns is not None
    return f"{duration(row.step_time_ns.estimate)} {plus_minus(row.step_time_ns)}".rstrip()


def _can_be_told(first: Row, rest: list[Row]) -> bool:
    """Of three rows and more letters say it, of two their ratio."""
    if first.alike:
        return True
    ratio = _ratio(first, rest[0]) if len(rest) == 1 else None
    return ratio is not None and ratio.low is not None


def _alike(first: Row, other: Row) -> bool:
    """Whether they share a letter, or the interval of their ratio holds 1."""
    ratio = _ratio(first, other)
    if ratio is not None and not (ratio.low is not None and ratio.high is not None):
        return True
    if ratio is not None and ratio.low <= 1 <= ratio.high:
        return True
    return bool(set(first.alike or "") & set(other.alike or ""))


def _ratio(first: Row, other: Row) -> Any:
    """Where one of the two is the reference of the other."""
    if first.reference == other.case.id:
        return first.ratio
    return other.ratio if other.reference == first.case.id else None


def _versus(first: Row, rest: list[Row], names: dict[str, str]) -> str:
    """': 1.23x faster [1.20, 1.26] than `pytorch`', or of a reference who comes next."""
    base = next((row for row in rest if first.reference == row.case.id and first.ratio), None)
    if base is not None and first.ratio is not None:
        return f": {ratio_words(first.ratio)} than {names[base.case.id]}"
    following = rest[0]
    if first.is_reference and following.ratio is not None and following.reference == first.case.id:
        return f"; the next is {names[following.case.id]}, {ratio_words(following.ratio)}"
    return ""


def _proofs(rows: list[Row]) -> str:
    """Nothing where all of them were proven equal."""
    if all(shown(row).is_proven for row in rows):
        return ""
    return f" That they do equal work is not shown ({proof_state(rows)})."
