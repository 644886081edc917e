"""Does it crash or adapt? What each contender does under each cap on memory, against the same without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timetrial.analysis.summary import Row
from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError
from timetrial.records.model import Cause
from timetrial.records.reference import facts_of
from timetrial.statistics.intervals import Estimate

if TYPE_CHECKING:
    from rich.console import RenderableType

CAP, NONE = "memory.cap", "none"
LESS = 0.9  # of the memory without a cap: launches of one row differ by some percent (TensorFlow: 3)


@dataclass(frozen=True)
class Cell:
    """One contender under one cap. Ratios are over the same contender without a cap; None: one of the two has
    no number."""

    cap: str  # as it was asked
    case: str  # id
    outcome: str | None  # of the row
    cause: Cause | None = None  # of its first launch that failed
    boundary: str | None = None  # how far that came
    memory_ratio: float | None = None  # of the peaks while steady
    time: Estimate | None = None  # the ratio of step times, where the row without a cap is its reference
    time_ratio: float | None = None  # the same without an interval

    @property
    def is_adapted(self) -> bool:
        """It ran with less memory than it takes where it may have all."""
        return self.outcome == "ok" and self.memory_ratio is not None and self.memory_ratio < LESS

    @property
    def is_slower(self) -> bool:
        """Shown, by an interval."""
        return self.time is not None and self.time.low is not None and self.time.low > 1

    @property
    def words(self) -> str:
        """'runs', 'adapts: 0.71x memory, 1.40x time', 'capped (refused) behind step 3'."""
        if self.outcome is None:
            return "-"
        if self.outcome != "ok":
            cause = f" ({self.cause})" if self.cause else ""
            return f"{self.outcome}{cause}" + (f" behind {self.boundary}" if self.boundary else "")
        if not self.is_adapted:
            return "runs"
        time = f", {self.time_ratio:.2f}x time" if self.time_ratio is not None else ""
        return f"adapts: {self.memory_ratio:.2f}x memory{time}"


@dataclass(frozen=True)
class CapsMatrix:
    """A line for each contender and workload, a column for each cap."""

    caps: Sequence[str]  # `none` first, then from the largest to the smallest
    contenders: Sequence[str]  # what tells the lines apart
    cells: Sequence[Sequence[Cell | None]]  # [contender][cap]; None: there is no such case

    def table(self) -> RenderableType:
        """For rich."""
        from timetrial.adaptation.table import caps_table

        return caps_table(self)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def cell(self, contender: str, cap: str) -> Cell | None:
        """By what the table calls them."""
        return self.cells[list(self.contenders).index(contender)][list(self.caps).index(cap)]


def caps_matrix(rows: Sequence[Row]) -> CapsMatrix:
    """InputError: the rows have no cap."""
    if not any(CAP in row.case.settings for row in rows):
        raise InputError(
            f"No row of these results has a cap. Span one: timetrial run ... {CAP}=none,1GB,512MB"
        )
    caps = sorted(
        {_cap_of(row) for row in rows}, key=lambda cap: float("-inf") if cap == NONE else -bytes_of(cap, CAP)
    )
    facts = [{key: str(value) for key, value in facts_of(row.case).items()} for row in rows]
    keys = list(dict.fromkeys(key for one in facts for key in one if key != CAP))
    telling = [key for key in keys if key == "backend" or len({one.get(key) for one in facts}) > 1]
    lines: dict[str, dict[str, Row]] = {}
    for row, own in zip(rows, facts, strict=True):
        words = [row.case.who if key == "backend" else f"{key}={own[key]}" for key in telling if key in own]
        lines.setdefault(" ".join(words), {})[_cap_of(row)] = row
    return CapsMatrix(
        caps,
        list(lines),
        [
            [_cell(line[cap], line.get(NONE)) if cap in line else None for cap in caps]
            for line in lines.values()
        ],
    )


def _cap_of(row: Row) -> str:
    return row.case.settings.get(CAP, NONE)


def _cell(row: Row, free: Row | None) -> Cell:
    endings = [one.record.ending for one in row.launches if one.record.ending is not None]
    memory = time = None
    if free is not None and free is not row:
        if row.peak_memory_bytes and free.peak_memory_bytes:
            memory = row.peak_memory_bytes / free.peak_memory_bytes
        if row.step_time_ns and free.step_time_ns:
            time = row.step_time_ns.estimate / free.step_time_ns.estimate
    return Cell(
        cap=_cap_of(row),
        case=row.case.id,
        outcome=row.outcome,
        cause=endings[0].cause if endings else None,
        boundary=endings[0].boundary if endings else None,
        memory_ratio=memory,
        time=row.ratio if free is not None and row.reference == free.case.id else None,
        time_ratio=time,
    )
