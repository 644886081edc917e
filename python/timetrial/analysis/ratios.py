"""Step times and ratios of rows: from launches to intervals, with the degrees that rows lend one another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.records.reference import facts_of, reference_of
from timetrial.statistics.alike import letters, told_apart
from timetrial.statistics.intervals import Estimate, paired_ratios, positive_locations
from timetrial.statistics.scatter import FEWEST_TO_BORROW

if TYPE_CHECKING:
    from timetrial.analysis.summary import Launch, Row

SAME_WORK = ("network", "dataset", "batch_size", "buckets", "optimizer", "task")
FEWEST_FOR_LETTERS = 3  # rows: of two, the ratio says it all


def speed_of(launches: Sequence[Launch]) -> list[Launch]:
    """Those that the step time is for."""
    return [one for one in launches if one.record.purpose == "speed"]


def with_step_times(rows: Sequence[Row]) -> list[Row]:
    """Each row that has a step time with the interval that rows of equal threads lend it degrees of freedom
    for (scatter.py)."""
    timed = [row for row in rows if row.step_time_ns is not None and row.outcome == "ok"]
    found: dict[str, Estimate | None] = {}
    for group in _of_equal_threads(timed):
        values = [list(by_block(row).values()) for row in group]
        found |= zip((row.case.id for row in group), positive_locations(values), strict=True)
    return [replace(row, step_time_ns=found.get(row.case.id) or row.step_time_ns) for row in rows]


def with_ratios(rows: Sequence[Row], fixed: Mapping[str, Any]) -> list[Row]:
    """Each row with the row that it is compared with, and the ratio of both. `fixed`: what a reference is."""
    facts = [facts_of(row.case) for row in rows]
    bases: dict[str, Row | None] = {}
    ratios: dict[str, list[float]] = {}
    for index, row in enumerate(rows):
        other = reference_of(index, facts, fixed)
        base = rows[other] if other is not None else None
        bases[row.case.id] = base
        if base is not None and base is not row and base.outcome == "ok" and row.outcome == "ok":
            ratios[row.case.id] = ratios_of(row, base)
    found: dict[str, Estimate | None] = {}
    for group in _of_equal_threads([row for row in rows if row.case.id in ratios]):
        names = [row.case.id for row in group]
        found |= zip(names, positive_locations([ratios[name] for name in names]), strict=True)
    parts = {
        row.case.id: parts_of_scatter(row, base)
        for row in rows
        if row.case.id in ratios and (base := bases[row.case.id])
    }
    return [
        replace(
            row,
            reference=base.case.id if base else None,
            ratio=found.get(row.case.id),
            scatter_parts=parts.get(row.case.id),
        )
        for row, base in ((row, bases[row.case.id]) for row in rows)
    ]


def _of_equal_threads(rows: Sequence[Row]) -> list[list[Row]]:
    """How launches scatter depends on how many CPUs they take."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row.case.axes.get("threads")), []).append(row)
    return list(groups.values())


def ratios_of(row: Row, base: Row) -> list[float]:
    """One for each heat that both were in; of rows that share none (other threads, or each launch alone), one
    for each block."""
    own, other = _by_heat(row), _by_heat(base)
    if own.keys() & other.keys():
        return paired_ratios(own, other)
    return paired_ratios(by_block(row), by_block(base))


@dataclass(frozen=True)
class Parts:
    """What the ratios of a row scatter by from heat to heat, as fractions; `turns` is what longer heats would
    make smaller, `launches` what only more of them average."""

    heats: float  # from heat to heat, in all
    turns: float  # of that, by turns
    launches: float  # of that, by launches


def parts_of_scatter(row: Row, base: Row) -> Parts | None:
    """By the method of moments. None: fewer than two heats that both rode in."""
    own, other = _launches_by_heat(row), _launches_by_heat(base)
    both = [(own[heat], other[heat]) for heat in own.keys() & other.keys()]
    levels = [(a.level, b.level) for a, b in both if a.level is not None and b.level is not None]
    if len(levels) < 2:
        return None
    total = float(np.var([np.log(a.step_ns / b.step_ns) for a, b in levels], ddof=1))
    errors = [error for a, b in levels if not math.isnan(error := a.error_against(b))]
    turns = float(np.mean(np.square(errors))) if errors else 0.0
    return Parts(total**0.5, turns**0.5, max(0.0, total - turns) ** 0.5)


def by_block(row: Row) -> dict[int, float]:
    """Step times in nanoseconds of the launches that are ok; of several in a block (a reference that rode in
    each of its heats), the geometric mean."""
    blocks: dict[int, list[float]] = {}
    for launch, step_ns in _timed(row):
        blocks.setdefault(launch.record.block, []).append(step_ns)
    return {block: float(np.exp(np.mean(np.log(times)))) for block, times in blocks.items()}


def _by_heat(row: Row) -> dict[int, float]:
    timed = _timed(row)
    return {one.record.heat: step_ns for one, step_ns in timed if one.record.heat is not None}


def _launches_by_heat(row: Row) -> dict[int, Launch]:
    return {one.record.heat: one for one, _ in _timed(row) if one.record.heat is not None}


def _timed(row: Row) -> list[tuple[Launch, float]]:
    """Launches that are ok, with their step times: what ratios are taken from."""
    return [
        (launch, launch.step_time_ns)
        for launch in speed_of(row.launches)
        if launch.step_time_ns and launch.record.outcome == "ok"
    ]


def with_letters(rows: Sequence[Row]) -> list[Row]:
    """Rows of the same work with letters, the fastest first: two that share one cannot be told apart."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.outcome == "ok" and row.step_time_ns is not None:
            work = tuple(repr(getattr(row.case, key)) for key in SAME_WORK)
            groups.setdefault(work, []).append(row)
    found: dict[str, str] = {}
    for group in groups.values():
        if len(group) < FEWEST_FOR_LETTERS:
            continue
        ranked = sorted(group, key=lambda row: row.step_time_ns.estimate if row.step_time_ns else 0.0)
        pairs = {
            (i, j): np.log(ratios_of(ranked[i], ranked[j])).tolist()
            for i, j in itertools.combinations(range(len(ranked)), 2)
        }
        if any(len(ratios) < FEWEST_TO_BORROW for ratios in pairs.values()):
            continue  # nobody can be told apart from anybody: that would look like a result
        threads = [str(row.case.axes.get("threads")) for row in ranked]
        kinds = {(i, j): frozenset((threads[i], threads[j])) for i, j in pairs}
        names = (row.case.id for row in ranked)
        found |= zip(names, letters(len(ranked), told_apart(pairs, kinds)), strict=True)
    return [replace(row, alike=found.get(row.case.id)) for row in rows]
