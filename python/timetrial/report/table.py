"""The table of `timetrial run`: one line per case, reasons in place of numbers, then what to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.analysis.summary import Row
from timetrial.cases.case import NO_NETWORK, RESERVED_AXES
from timetrial.cases.settings import PLAIN_WORDS
from timetrial.records.model import ExperimentRecord
from timetrial.report import columns
from timetrial.report.columns import closing_lines, outcome_style
from timetrial.report.more_columns import chosen_columns, why_empty
from timetrial.report.numbers import (
    OF_PEAK,
    accuracy_words,
    duration,
    first_line,
    memory,
    plus_minus,
    ratio_words,
)
from timetrial.report.proof_words import UNPROVEN, UNPROVEN_STYLE, Shown, kept_words, proof_words
from timetrial.report.remarks import remark_lines, remarks_of

if TYPE_CHECKING:
    from timetrial.results.results import Results


# Rows that differ in these stand under headings: times of different work are not to be compared.
SECTIONS = ("network", "task")


@dataclass(frozen=True)
class Line:
    """A row: the cells of its axes, then cells of numbers or one reason across all of them."""

    section: str
    axes: list[str]
    cells: list[tuple[str, str]]  # (text, style)
    reason: tuple[str, str] | None = None


class CasesTable:
    """A renderable for rich: header, rows, warnings, where the records are and how to measure again.

    `titles` and `lines` are what it shows, for a page to show the same.
    """

    def __init__(self, results: Results, *, columns: Sequence[str] = ()):
        self._results = results
        self._more = chosen_columns(columns)
        rows = results.rows
        self._axes = _shown_axes(rows)
        self._sections = [axis for axis in SECTIONS if axis in self._axes]
        self._axes = [axis for axis in self._axes if axis not in self._sections]
        self._facts = _shown_facts(rows, self._axes)
        self._by_id = {row.case.id: row for row in results.all_rows}
        self._alike = any(row.alike for row in rows)
        self._of_peak = any(row.percent_of_peak is not None for row in rows)
        self._accuracy = any(row.accuracy for row in rows)
        lines = _listed_once([self._line(row) for row in rows])
        order = list(dict.fromkeys(line.section for line in lines))
        self.lines = sorted(lines, key=lambda line: order.index(line.section))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """In any width."""
        yield Text(header(self._results), style="bold")
        titles = self.titles
        right = frozenset(place for place, title in enumerate(titles) if self.is_number(title))
        shown = [
            columns.Line([*((text, "") for text in line.axes), *line.cells], line.reason, line.section)
            for line in self.lines
        ]
        keys = len(self._axes) + len(self._facts)
        yield from columns.Layout(titles, keys, right).lines(shown, options.max_width)
        words = legend(self._results.rows)
        if words:
            yield Text(f"  {words}", style="dim", overflow="fold")
        for words in why_empty(self._more, self._results.rows):
            yield Text(f"  {words}", style="yellow", overflow="fold")
        yield from remark_lines(warnings(self._results), options.max_width)
        yield closing_lines(self._results.path, self._results.experiment.again, options.max_width)

    @property
    def titles(self) -> list[str]:
        """Of the columns."""
        return [*self._axes, *self._facts, *self._titles()]

    def is_number(self, title: str) -> bool:
        """Whether a column holds numbers alone, which stand at its right."""
        return title not in (*self._axes, *self._facts, "alike") and not title.startswith("vs ")

    def _titles(self) -> list[str]:
        titles = ["step", f"vs {reference_name(self._results)}"]
        titles += ["alike"] if self._alike else []
        titles += ["of peak"] if self._of_peak else []
        titles += ["memory"]
        titles += [one.title for one in self._more]
        return [*titles, "accuracy"] if self._accuracy else titles

    def _line(self, row: Row) -> Line:
        section = " · ".join(_axis(row, axis) for axis in self._sections)
        axes = [_axis(row, axis) for axis in self._axes]
        axes += [_word(_facts(row).get(fact)) for fact in self._facts.values()]
        if row.outcome != "ok" or row.step_time_ns is None:
            outcome = row.outcome or "not measured"
            reason = f"{outcome}: {first_line(row.reason)}" if row.reason else outcome
            if len(row.outcomes) > 1:
                counts = ", ".join(f"{count} {name}" for name, count in row.outcomes.items())
                reason += f" ({counts})"
            return Line(section, axes, [("-", "dim")], (reason, outcome_style(outcome)))
        step = f"{duration(row.step_time_ns.estimate)} {plus_minus(row.step_time_ns):>7}".rstrip()
        peak = "" if row.percent_of_peak is None else f"{row.percent_of_peak:.0f} %"
        held = "" if row.peak_memory_bytes is None else memory(row.peak_memory_bytes)
        cells = [(step, "bold"), self._versus(row)]
        if self._alike:
            cells.append((row.alike or "", ""))
        cells += [(peak, "")] if self._of_peak else []
        cells += [(held, "")]
        cells += [(one.cell(row), "") for one in self._more]
        if self._accuracy:
            cells.append((_accuracy(row), ""))
        return Line(section, axes, cells)

    def _versus(self, row: Row) -> tuple[str, str]:
        if row.is_reference:
            return "reference", "dim"
        if row.ratio is None:
            return "", ""
        words = ratio_words(row.ratio)
        if not all(shown(one).is_proven for one in (row, self._by_id[row.reference or ""])):
            return f"{words} {UNPROVEN}", UNPROVEN_STYLE
        style = "green" if "faster" in words else "red" if "slower" in words else ""
        return words, style


def _listed_once(lines: list[Line]) -> list[Line]:
    """What is unavailable for one reason in several sections (networks, tasks) comes once, in the end."""
    sections: dict[tuple[str, ...], set[str]] = {}
    for line in lines:
        sections.setdefault(_missing(line), set()).add(line.section)
    kept = [line for line in lines if not _missing(line) or len(sections[_missing(line)]) == 1]
    repeated: dict[tuple[str, ...], Line] = {}
    for line in lines:
        if _missing(line) and len(sections[_missing(line)]) > 1:
            repeated.setdefault(_missing(line), replace(line, section="everywhere"))
    return [*kept, *repeated.values()]


def _missing(line: Line) -> tuple[str, ...]:
    """What a line says of a row that is unavailable; () for others."""
    if line.reason is None or not line.reason[0].startswith("unavailable"):
        return ()
    return (*line.axes, line.reason[0])


def header(results: Results) -> str:
    """The experiment in one line: what is the same for every row."""
    experiment = results.experiment
    launches = "profile" if experiment.profiles else _launches(experiment.launches, results.rows)
    parts = [*common_facts(experiment, results.rows, launches)]
    reference = results.reference
    if reference and reference != experiment.reference:
        parts.append(f"reference: {reference_name(results)} (the first contender that is ok)")
    return " · ".join(parts)


def _launches(asked: int, rows: list[Row]) -> str:
    """'6 launches each', or '6 to 8' in records of versions that launched wide rows further."""
    most = max([asked, *(row.ok for row in rows)])
    return f"{asked}{f' to {most}' if most > asked else ''} launch{'es' if most != 1 else ''} each"


def common_facts(experiment: ExperimentRecord, rows: list[Row], measured: str) -> list[str]:
    """Name, workload, what was measured, machine, proof: what is the same for every row."""
    parts = [experiment.name]
    parts += [word for word in _common(row.case.network for row in rows) if word != NO_NETWORK]
    parts += [word for word in _common(row.case.dataset for row in rows) if word != NO_NETWORK]
    sizes = _common(str(row.case.batch_size) for row in rows)
    parts += [f"batch {size}" for size in sizes if rows[0].case.batch_size is not None]
    parts.append(measured)
    machine = experiment.machine
    if machine.get("cpu"):
        parts.append(f"{machine['cpu']}, {_plural(int(machine.get('usable_cpus', 1)), 'core')}")
    parts.append(proof_state(rows))
    return [part for part in parts if part]


def shown(row: Row) -> Shown:
    """What was shown of a row's contender."""
    return Shown(row.case.who, row.parity, is_wrong=row.outcome == "wrong")


def row_words(row: Row) -> str:
    """'8.31 ms ±3.6 %, 0.42x of ...', or why there is no time."""
    if row.outcome != "ok" or row.step_time_ns is None:
        return f"{row.outcome or 'not measured'}{f', {first_line(row.reason)}' if row.reason else ''}"
    words = f"{duration(row.step_time_ns.estimate)} {plus_minus(row.step_time_ns)}".rstrip()
    if row.ratio is not None:
        words += f", {row.ratio.estimate:.3g} times '{row.reference}'"
    return words


def proof_state(rows: list[Row]) -> str:
    """Whether the contenders were shown to compute the same."""
    return proof_words([shown(row) for row in rows if row.outcome not in ("unavailable", None)])


def reference_name(results: Results) -> str:
    """'pytorch', or 'threads=1' where the backend is not what the reference fixes."""
    fixed = results.reference or results.experiment.reference or {}
    called = {case.backend: case.who for case in results.experiment.cases}
    return (
        ", ".join(
            called.get(str(value), str(value)) if key == "backend" else f"{key}={value}"
            for key, value in fixed.items()
        )
        or "reference"
    )


def warnings(results: Results) -> list[str]:
    """What a reader must know, each with the rows it concerns and what to do about it."""
    return remarks_of(results.rows, results.remarks, _shown_axes(results.rows), _axis)


def _axis(row: Row, axis: str) -> str:
    return row.case.who if axis == "backend" else _word(row.case.axes.get(axis))


def _shown_axes(rows: list[Row]) -> list[str]:
    """Backend and threads always, and every axis in which the rows differ."""
    keys = list(dict.fromkeys(key for row in rows for key in row.case.axes))
    varying = {key for key in keys if len({repr(row.case.axes.get(key)) for row in rows}) > 1}
    return [key for key in keys if key in varying or key in RESERVED_AXES[:1] or key == "threads"]


def _settled(rows: list[Row]) -> list[str]:
    """Settings that were asked of all rows alike, which no column shows."""
    shown = {*_shown_axes(rows), *RESERVED_AXES}
    if len(rows) < 2:
        return []
    return [
        PLAIN_WORDS.get((name, value), f"{name}={value}")
        for name, value in rows[0].case.settings.items()
        if name not in shown and all(row.case.settings.get(name) == value for row in rows)
    ]


def _shown_facts(rows: list[Row], axes: Iterable[str]) -> dict[str, str]:
    """title -> fact: beside a library that varies, the kernel that it chose for this CPU."""
    settings = [axis.removesuffix(".library") for axis in axes if axis.endswith(".library")]
    facts = {f"{prefix} kernel": f"{prefix}.kernel" for prefix in settings}
    return {title: fact for title, fact in facts.items() if any(fact in _facts(row) for row in rows)}


def _facts(row: Row) -> dict[str, str]:
    return row.launches[-1].record.facts if row.launches else {}


def _common(words: Iterable[str]) -> list[str]:
    """The word, if all rows share it."""
    distinct = set(words)
    return list(distinct) if len(distinct) == 1 else []


def _accuracy(row: Row) -> str:
    return "-" if row.accuracy is None else accuracy_words(row.accuracy)


def legend(rows: list[Row]) -> str:
    """What the columns are of, in one line; only of those that hold something."""
    timed = [row for row in rows if row.outcome == "ok" and row.step_time_ns is not None]
    words = []
    settled = _settled(rows)
    if settled:
        words.append(f"every row: {', '.join(settled)}")
    if any(row.alike for row in timed):
        words.append("alike: who shares a letter cannot be told apart")
    if any(row.percent_of_peak is not None for row in timed):
        words.append(f"of peak: {OF_PEAK}")
    if any(row.peak_memory_bytes is not None for row in timed):
        known = all(row.peak_memory_bytes != row.resident_peak_bytes for row in timed)
        words.append(f"memory: {'without mapped files and what is shared' if known else 'with mapped files'}")
    most, seeds = max(((row.accuracy_rows, row.accuracy.n) for row in timed if row.accuracy), default=(1, 1))
    if most > 1:
        with_seeds = f"with {seeds} seeds" if seeds > 1 else "with one seed"
        words.append(f"accuracy: of {most} rows proven to compute the same, together, {with_seeds}")
    elif any(row.accuracy_from for row in timed):
        words.append("accuracy: learned once per contender, whatever its threads")
    if kept := kept_words(row.proof_kept for row in rows if row.proof_kept):
        words.append(kept)
    return " · ".join(words)


def _word(value: Any) -> str:
    return "-" if value is None else str(value)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"
