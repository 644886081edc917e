"""Memory and time of a step as lines over batch size, width or depth: a fixed part, and a part for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.analysis.summary import Row
from timetrial.errors import InputError, nearest
from timetrial.records.reference import facts_of
from timetrial.report.columns import Grid
from timetrial.report.numbers import significant
from timetrial.statistics.lines import FEWEST_SIZES, Line, Part, fit_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Quantity = Literal["memory", "cpu_time", "step_time"]
# What a line may be over, and what one more of it is.
EACH: Mapping[str, str] = {"batch_size": "sample", "width": "unit of width", "depth": "layer"}
CROOKED = 0.1  # from this distance on of a value from its line, the line is doubted


@dataclass(frozen=True)
class QuantityKind:
    """`is_relative`: it scatters by a share of itself."""

    title: str
    units: tuple[tuple[float, str], ...]
    is_relative: bool
    value: Callable[[Row], float | None]


def _cpu_time_ns(row: Row) -> float | None:
    """CPUs used are over all time while steady, and so must be the time of a step: samples/s are."""
    used, speed, size = row.cpus_used, row.samples_per_s, row.case.batch_size
    return None if used is None or speed is None or size is None else 1e9 * used * size / speed.estimate


_BYTES = ((2.0**30, "GB"), (2.0**20, "MB"), (2.0**10, "kB"), (1.0, "B"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
QUANTITIES: Mapping[Quantity, QuantityKind] = {
    "memory": QuantityKind("memory", _BYTES, False, lambda row: row.peak_memory_bytes),
    "cpu_time": QuantityKind("CPU time", _TIMES, True, _cpu_time_ns),
    "step_time": QuantityKind(
        "step time", _TIMES, True, lambda row: row.step_time_ns.estimate if row.step_time_ns else None
    ),
}


@dataclass(frozen=True)
class SizeLine:
    """Of one contender: bytes of private memory, or nanoseconds of a step."""

    axes: Mapping[str, Any]  # of the contender, without what the line is over
    over: str  # what grows
    quantity: Quantity  # what is counted
    sizes: tuple[int, ...]  # at which it was measured
    values: tuple[float, ...]  # one for each of them
    line: Line  # through these

    @property
    def words(self) -> str:
        """'eigen threads=1'."""
        shown = {key: value for key, value in self.axes.items() if value is not None}
        return " ".join(str(value) if key == "backend" else f"{key}={value}" for key, value in shown.items())

    @property
    def is_straight(self) -> bool:
        """Whether no value lies far from the line."""
        return self.line.worst <= CROOKED

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "axes": dict(self.axes),
            "over": self.over,
            "quantity": self.quantity,
            "sizes": list(self.sizes),
            "values": list(self.values),
            "fixed": dataclasses.asdict(self.line.fixed),
            "each": dataclasses.asdict(self.line.each),
            "worst": self.line.worst,
        }


@dataclass(frozen=True)
class Lines:
    """All contenders that were measured at enough sizes, in the order of the table."""

    over: str  # what grows
    lines: Sequence[SizeLine]  # one for each contender and quantity

    def largest(self, memory: str | int) -> dict[str, Part]:
        """For each contender the size at which it comes to so much memory ("2GB", or bytes), as its line
        predicts, with its interval. Those whose memory was not shown to grow are left out."""
        from timetrial.cases.sizes import bytes_of

        limit = bytes_of(memory)
        found = {one.words: one.line.reaches(limit) for one in self.lines if one.quantity == "memory"}
        return {words: part for words, part in found.items() if part is not None}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"over": self.over, "lines": [one.to_json() for one in self.lines]}

    def plot(self) -> Figure:
        """What was measured, the lines, and in which range they predict the next value."""
        from timetrial.figures.plots_lines import lines_figure

        return lines_figure(self)

    def table(self) -> RenderableType:
        """For rich."""
        titles = ("contender", "of a step", "fixed", f"each {EACH[self.over]}", "sizes", "")
        rows = [
            [
                one.words,
                QUANTITIES[one.quantity].title,
                part_words(one.line.fixed, one.quantity),
                part_words(one.line.each, one.quantity),
                f"{min(one.sizes)} to {max(one.sizes)}, {len(one.sizes)} of them",
                "" if one.is_straight else f"no straight line: off by {100 * one.line.worst:.0f} %",
            ]
            for one in self.lines
        ]
        words = "  least squares with 95 % intervals; one value for each size, which all launches of it make"
        return Group(Grid(titles, rows), Text(words, style="dim", overflow="fold"))

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def part_words(part: Part, quantity: Quantity) -> str:
    """'46.1 MB [44.0, 48.2]', all in one unit."""
    largest = max(abs(part.estimate), abs(part.low), abs(part.high))
    scale, unit = next(((s, u) for s, u in QUANTITIES[quantity].units if largest >= s), (1.0, ""))
    estimate, low, high = (_signed(value / scale) for value in (part.estimate, part.low, part.high))
    return f"{estimate} {unit} [{low}, {high}]"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else ''}{significant(abs(value))}"


def lines_of(rows: Sequence[Row], over: str = "batch_size") -> Lines:
    """Of rows that differ in `over`. InputError: no contender was measured at enough sizes."""
    if over not in EACH:
        raise InputError(f"over={over!r}: expected {' or '.join(EACH)}.{nearest(over, EACH)}")
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.outcome == "ok" and isinstance(_size(row, over), int):
            groups.setdefault(repr(sorted(_others(row, over).items(), key=str)), []).append(row)
    enough = [group for group in groups.values() if len({_size(row, over) for row in group}) >= FEWEST_SIZES]
    if not enough:
        raise InputError(
            f"No contender was measured at {FEWEST_SIZES} values of {over}: run it with {over}=16,64,256"
        )
    varying = _varying([_others(group[0], over) for group in enough])
    found = []
    for group in enough:
        axes = {key: value for key, value in _others(group[0], over).items() if key in varying}
        found += [one for name in QUANTITIES if (one := _line(group, axes, over, name)) is not None]
    return Lines(over, found)


def _line(group: Sequence[Row], axes: Mapping[str, Any], over: str, name: Quantity) -> SizeLine | None:
    """None: it is not known at enough sizes. Of rows of one size (A/A) the mean counts."""
    kind = QUANTITIES[name]
    values: dict[int, list[float]] = {}
    for row in group:
        value, size = kind.value(row), _size(row, over)
        if value is not None and value > 0 and size is not None:
            values.setdefault(size, []).append(value)
    if len(values) < FEWEST_SIZES:
        return None
    sizes = tuple(sorted(values))
    means = tuple(sum(values[size]) / len(values[size]) for size in sizes)
    return SizeLine(axes, over, name, sizes, means, fit_line(sizes, means, relative=kind.is_relative))


def _size(row: Row, over: str) -> int | None:
    if over == "batch_size":
        return row.case.batch_size
    value = row.case.axes.get(over)
    return value if isinstance(value, int) else None


def _others(row: Row, over: str) -> dict[str, Any]:
    """What tells a contender from another; a network's name has its sizes in it."""
    facts = {key: value for key, value in facts_of(row.case).items() if key not in (over, "repeat")}
    network = str(facts.get("network"))
    return facts if over == "batch_size" else {**facts, "network": network.partition("@")[0]}


def _varying(contenders: Sequence[Mapping[str, Any]]) -> list[str]:
    """The backend, and in what else they differ."""
    keys = dict.fromkeys(["backend", *(key for one in contenders for key in one)])
    return [key for key in keys if key == "backend" or len({str(one.get(key)) for one in contenders}) > 1]
