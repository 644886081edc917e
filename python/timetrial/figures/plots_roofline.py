"""The roofline of a profile: what each layer reaches, below what peak and memory allow it.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009, with measured ceilings and the least traffic on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timetrial.analysis.profile import ALL_LAYERS, LayerRow, StepProfile
from timetrial.errors import InputError
from timetrial.figures.plots_data import figure_title
from timetrial.figures.plots_style import COLORS, MUTED, QUESTIONS, ink, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.results.profile import Profile

NAMED = 0.05  # of a step: a point with less has no name beside it
# Who multiplies nothing has no place on an axis of operations per byte. It stands at the left edge, as far
# below the memory's line as its bytes per second are below the bandwidth.
EDGE = 0.25
_MARKERS = {
    "forward": "o",
    "loss": "o",
    "backward": "s",
    "backward_data": "<",
    "backward_weights": ">",
    "update": "^",
}
_WORDS = {
    "forward": "forward",
    "backward": "backward",
    "backward_data": "backward, data",
    "backward_weights": "backward, weights",
    "update": "update",
}
_LARGEST = 500.0  # of a marker, in square points: that of a layer with the whole step


@dataclass(frozen=True)
class Point:
    """A layer in one direction: operations per byte (EDGE: it multiplies nothing), and what it reaches."""

    case: int
    name: str
    direction: str
    operations_per_byte: float
    flops_per_s: float
    share: float


@dataclass(frozen=True)
class Ceilings:
    """What the machine has, of the cases' threads."""

    peak_flops: float
    memory_bandwidth: float
    cache_bandwidth: float | None

    def reachable(self, operations_per_byte: float) -> float:
        """Operations per second at most, where every byte comes from memory."""
        return min(self.peak_flops, operations_per_byte * self.memory_bandwidth)


def ceilings(profile: Profile) -> Ceilings:
    """InputError: no case has them, or cases differ in their threads."""
    steps = [case.step for case in profile.cases if case.step and case.step.memory_bandwidth]
    found = {(one.peak_flops, one.memory_bandwidth, one.cache_bandwidth) for one in steps}
    if not found:
        raise InputError(
            "No case has a roofline to draw: each needs a proof, a profile, and a measured peak and "
            "bandwidth. The table says what is missing: profile.table()."
        )
    if len(found) > 1:
        raise InputError(
            "The cases have several numbers of threads, and each number has ceilings of its own: choose one, "
            "profile.sel(threads=1).roofline()."
        )
    peak, memory, cache = found.pop()
    assert peak is not None
    assert memory is not None
    return Ceilings(peak, memory, cache)


def points(profile: Profile) -> list[Point]:
    """What the figure draws, in the order of the table."""
    found = []
    for number, case in enumerate(profile.cases):
        for row in case.step.rows if case.step else []:
            point = _point(number, row)
            if point is not None:
                found.append(point)
    return found


def _point(case: int, row: LayerRow) -> Point | None:
    name = "all layers" if row.node == ALL_LAYERS else row.node
    if row.flops_per_s is not None and row.operations_per_byte is not None:
        return Point(case, name, row.direction, row.operations_per_byte, row.flops_per_s, row.share)
    if row.bytes_per_s is not None:
        return Point(case, name, row.direction, EDGE, EDGE * row.bytes_per_s, row.share)
    return None


def _largest(drawn: Sequence[Point], point: Point) -> Point:
    """Of the same layer of the same case the one with the largest share: that one has the name beside it."""
    same = [one for one in drawn if (one.case, one.name) == (point.case, point.name)]
    return max(same, key=lambda one: one.share)


def roofline_figure(profile: Profile) -> Figure:
    """One panel, both axes logarithmic. Color: the case; marker: the direction; area: the share of a step."""
    machine, drawn = ceilings(profile), points(profile)
    figure, (panel,) = new_figure(10.0, 6.5)
    right = 2 * max(
        [machine.peak_flops / machine.memory_bandwidth, *(one.operations_per_byte for one in drawn)]
    )
    _draw_ceilings(panel, machine, right)
    named = {point for point in drawn if point.share >= NAMED and point == _largest(drawn, point)}
    for point in drawn:
        panel.scatter(
            point.operations_per_byte,
            point.flops_per_s / 1e9,
            s=max(12.0, _LARGEST * point.share),
            marker=_MARKERS[point.direction],
            color=COLORS[point.case % len(COLORS)],
            alpha=0.75,
            linewidths=0,
            zorder=3,
        )
        if point in named:
            panel.annotate(
                point.name,
                (point.operations_per_byte, point.flops_per_s / 1e9),
                xytext=(6, -10),
                textcoords="offset points",
                fontsize=8,
                zorder=4,
            )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(EDGE / 1.5, right)
    low = min([machine.reachable(EDGE) / 30, *(one.flops_per_s for one in drawn)])
    panel.set_ylim(low / 1e9 / 1.5, 2.5 * machine.peak_flops / 1e9)
    panel.axvspan(EDGE / 1.5, EDGE * 1.5, color=MUTED, alpha=0.12, linewidth=0)
    panel.set_xlabel(
        "operations per byte that must at least be moved\n"
        "(gray strip: layers that multiply nothing, by their bytes)"
    )
    panel.set_ylabel("GFLOP/s, nominal work")
    rows = [case.row for case in profile.cases]
    panel.set_title(figure_title(profile.experiment, rows, QUESTIONS["roofline"]), loc="left", fontsize=12)
    _legend(figure, profile.labels, [case.step for case in profile.cases], drawn)
    return figure


def _draw_ceilings(panel: Axes, machine: Ceilings, right: float) -> None:
    """The peak, the memory's line up to it, and that of the second cache, each with its name and number."""
    peak = machine.peak_flops
    for bandwidth, words, style in (
        (machine.memory_bandwidth, "memory", "solid"),
        (machine.cache_bandwidth, "second cache", "dashed"),
    ):
        if bandwidth is None:
            continue
        meet = peak / bandwidth
        left = EDGE / 1.5
        panel.plot([left, meet], [left * bandwidth / 1e9, peak / 1e9], color=ink(), linestyle=style, zorder=2)
        panel.annotate(
            f"{words}: {bandwidth / 1e9:.0f} GB/s",
            (EDGE * 2, EDGE * 2 * bandwidth / 1e9),
            xytext=(10, -6),
            textcoords="offset points",
            fontsize=9,
        )
    first = peak / max(machine.memory_bandwidth, machine.cache_bandwidth or 0.0)
    panel.plot([first, right], [peak / 1e9] * 2, color=ink(), zorder=2)
    panel.annotate(
        f"peak: {peak / 1e9:.0f} GFLOP/s",
        (right, peak / 1e9),
        xytext=(-6, 5),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )


def _legend(
    figure: Figure, labels: Sequence[str], steps: Sequence[StepProfile | None], drawn: Sequence[Point]
) -> None:
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], linestyle="", marker="o", color=COLORS[number % len(COLORS)], label=label)
        for number, (label, step) in enumerate(zip(labels, steps, strict=True))
        if step is not None
    ]
    seen = {"forward" if point.direction == "loss" else point.direction for point in drawn}
    entries += [
        Line2D([], [], linestyle="", marker=_MARKERS[direction], color=MUTED, label=words)
        for direction, words in _WORDS.items()
        if direction in seen
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=6, fontsize=9, frameon=False)
