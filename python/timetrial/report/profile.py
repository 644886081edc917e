"""The tables of `timetrial profile`: a block per case, a line per layer and direction, and their sum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.analysis.profile import ALL_LAYERS, LayerRow, Quartiles, StepProfile
from timetrial.cautions import advised
from timetrial.report.columns import Layout, Line, closing_lines, outcome_style
from timetrial.report.numbers import UNIT_NS, duration, first_line
from timetrial.report.remarks import remark_lines
from timetrial.report.table import common_facts

if TYPE_CHECKING:
    from timetrial.results.profile import CaseProfile, Profile

_TITLES = ("layer", "kind", "direction", "time", "spread", "share", "GFLOP/s", "of peak", "GB/s", "of limit")
_LAYOUT = Layout(_TITLES, keys=3, right=frozenset(range(3, len(_TITLES))))
_SUM, _PLAIN = "sum of these", "plain step"


class ProfileTable:
    """A renderable for rich: a header, then each case with its layers or the reason why it has none."""

    def __init__(self, profile: Profile):
        self._profile = profile

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Columns have the same widths in every block, so that cases can be compared by eye."""
        profile = self._profile
        rows = [case.row for case in profile.cases]
        yield Text(" · ".join(common_facts(profile.experiment, rows, "profile")), style="bold")
        blocks = [list(_lines(case.step)) if case.step else [] for case in profile.cases]
        shown = [[_line(cells) for cells in block] for block in blocks]
        widths = _LAYOUT.widths(line for block in shown for line in block)
        for case, label, block in zip(profile.cases, profile.labels, shown, strict=True):
            yield Text()
            yield _title(case, label)
            if case.step is None:
                continue
            yield from _LAYOUT.lines(block, options.max_width, widths)
            yield from _overhead_line(case.step)
            yield from remark_lines(
                map(advised, [*case.step.warnings, *case.row.warnings]), options.max_width
            )
        yield Text()
        yield from remark_lines(profile_remarks(profile), options.max_width)
        yield Text("  time: median of the profiled steps; spread: half of their middle half", style="dim")
        yield closing_lines(profile.path, profile.experiment.again, options.max_width)


def _title(case: CaseProfile, label: str) -> Text:
    row, step = case.row, case.step
    threads = row.case.axes.get("threads")
    name = label if threads is None or "threads" in label else f"{label}, threads {threads}"
    text = Text(name, style="bold cyan")
    if step is None:
        outcome = row.outcome or "not measured"
        words = f"{outcome}: {first_line(row.reason)}" if row.reason else outcome
        return text.append(f"  {words}", style=outcome_style(outcome))
    parts = [f"{step.steps} profiled steps"]
    if step.peak_flops:
        parts.append(f"measured peak {step.peak_flops / 1e9:.0f} GFLOP/s")
    if step.memory_bandwidth:
        parts.append(f"memory {step.memory_bandwidth / 1e9:.1f} GB/s")
    if not case.proven:
        parts.append("unproven: no percent of peak")
    return text.append(f"  {' · '.join(parts)}", style="dim")


def _line(cells: list[str]) -> Line:
    style = "bold" if cells[0] in (_SUM, _PLAIN) else ""
    return Line([(cell, style) for cell in cells])


def _lines(step: StepProfile) -> Iterator[list[str]]:
    """The cells of every line of a block."""
    before = None
    for row in step.rows:
        name = "all layers" if row.node == ALL_LAYERS else row.node
        yield [
            "" if row.node == before else name,
            "" if row.node == before else row.kind,
            row.direction.replace("_", " "),
            _time(row.time_ns.median, step),
            _spread(row.time_ns),
            f"{100 * row.share:.1f} %",
            *_rates(row),
        ]
        before = row.node
    yield [
        _SUM, "", "", _time(step.layers_ns, step), "", "100.0 %",
        *_rates_of_a_step(step, step.layers_ns),
    ]  # fmt: skip
    plain = step.plain_step_ns
    if plain is not None:
        yield [
            _PLAIN, "", "", _time(plain.median, step), _spread(plain), "",
            *_rates_of_a_step(step, plain.median),
        ]  # fmt: skip


def _rates(row: LayerRow) -> list[str]:
    return [
        "" if row.flops_per_s is None else f"{row.flops_per_s / 1e9:.1f}",
        "" if row.percent_of_peak is None else f"{row.percent_of_peak:.0f} %",
        "" if row.bytes_per_s is None else f"{row.bytes_per_s / 1e9:.1f}",
        "" if row.percent_of_limit is None else f"{row.percent_of_limit:.0f} % {row.limit}",
    ]


def _rates_of_a_step(step: StepProfile, ns: float) -> list[str]:
    flops, percent = step.flops_per_s(ns), step.percent_of_peak(ns)
    return [
        "" if flops is None else f"{flops / 1e9:.1f}",
        "" if percent is None else f"{percent:.0f} %",
        "",
        "",
    ]


def _time(ns: float, step: StepProfile) -> str:
    """In the unit of the whole step, with as many decimals in every line: the lines can be added."""
    number, unit = duration(step.layers_ns).split()
    decimals = 3 if float(number) < 100 else 2
    return f"{ns / UNIT_NS[unit]:.{decimals}f} {unit}"


def _spread(time: Quartiles) -> str:
    return f"±{100 * time.half_width:.{1 if time.half_width < 0.095 else 0}f} %"


def profile_remarks(profile: Profile) -> list[str]:
    """What a reader must know of the whole, with what to do about it. What concerns a case stands there."""
    return [advised(text) for text in profile.warnings]


def _overhead_line(step: StepProfile) -> Iterator[Text]:
    """What the clocks cost."""
    if step.plain_step_ns is not None and step.overhead is not None:
        profiled, plain = duration(step.profiled_step_ns.median), duration(step.plain_step_ns.median)
        if step.plain_cpu_ns:
            plain += f" ({duration(step.plain_cpu_ns)} of CPU time)"
        words = f"a profiled step takes {profiled}, a plain one {plain}: {_overhead(step.overhead)}"
        yield Text(f"  {words}", style="dim")


def _overhead(fraction: float) -> str:
    if fraction < 0:
        return f"{-100 * fraction:.1f} % less, which is noise or a better order of work"
    return f"timing the layers costs {100 * fraction:.1f} %"
