"""What the search found: for each case the smallest cap that it runs in, and what happens just below."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.records.files import near
from timetrial.records.model import Cause
from timetrial.report.columns import Grid

_MB = float(1 << 20)


@dataclass(frozen=True)
class Fit:
    """One case. Sizes in bytes."""

    case: str  # id
    axes: Mapping[str, Any]  # what tells the cases apart
    outcome: str  # `ok`: a size was found; otherwise of the launch without a cap, or `unavailable`
    reason: str | None = None  # in words, unless ok
    smallest_bytes: int | None = None  # in which a training step ran, twice
    short_bytes: int | None = None  # the largest in which none did; None: even the least allowed is enough
    below: str | None = None  # the outcome of the launch with `short_bytes`
    cause: Cause | None = None  # of that
    boundary: str | None = None  # how far that came
    below_reason: str | None = None  # of that, in words
    kept_by: str | None = None  # who kept the cap: cgroup, data, watchdog, address_space
    held_bytes: int | None = None  # without a cap: the peak of private memory while steady
    launches: int = 0  # that the search took

    @property
    def words(self) -> str:
        """'eigen threads=1'."""
        shown = [value if key == "backend" else f"{key}={value}" for key, value in self.axes.items()]
        return " ".join(map(str, shown))


@dataclass(frozen=True)
class Fits:
    """All cases, in the order in which they were asked for."""

    folder: Path  # that has the records of all launches
    precision: float  # the smallest size is at most so much (a fraction) above one that was too small
    fits: Sequence[Fit] = field(default_factory=list)  # one for each case, in the order asked for

    @property
    def is_whole(self) -> bool:
        """Whether each case has an answer, or is not here."""
        return all(one.outcome in ("ok", "unavailable") for one in self.fits)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"precision": self.precision, "fits": [dataclasses.asdict(one) for one in self.fits]}

    def table(self) -> RenderableType:
        """For rich."""
        rows = [
            [one.words, _size(one.smallest_bytes), _size(one.held_bytes), _below(one)] for one in self.fits
        ]
        titles = ("case", "runs in", "holds uncapped", "with a little less")
        ways = {one.kept_by for one in self.fits if one.kept_by}
        return Group(
            Grid(titles, rows, wraps=True),
            Text(f"  memory.cap kept by: {', '.join(sorted(ways)) or 'nobody'}; to {self.precision:.1%}"),
            Text(f"  records: {near(self.folder)}"),
        )

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def _size(size: int | None) -> str:
    return "-" if size is None else f"{size / _MB:.1f} MB"


def _below(one: Fit) -> str:
    if one.outcome != "ok":
        return f"{one.outcome}: {one.reason}"
    if one.below is None:
        return "runs in the least that can be asked"
    why = f" ({one.cause})" if one.cause else ""
    return f"{one.below}{why} behind {one.boundary}"
