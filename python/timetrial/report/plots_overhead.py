"""The figure of overhead against work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.analysis.overhead import Overhead
from timetrial.report.plots_style import MUTED, color, new_figure, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def overhead_figure(lines: Sequence[Overhead], batch_size: int, title: str = "") -> Figure:
    """One bar per contender, fastest first: what a step of `batch_size` samples spends on its samples, and
    what it costs without any. The point is the measured time, where that size was measured."""
    ordered = sorted(lines, key=lambda line: line.overhead_ns + line.per_sample_ns * batch_size)
    scale, unit = time_unit((ordered[0].overhead_ns + ordered[0].per_sample_ns * batch_size) * 1e-9)
    figure, (panel,) = new_figure(9.0, 1.4 + 0.27 * len(ordered))
    for place, line in enumerate(ordered):
        fixed, work = line.overhead_ns * 1e-9 * scale, line.per_sample_ns * batch_size * 1e-9 * scale
        panel.barh(place, fixed, color=color(1), height=0.7, label="overhead" if place == 0 else None)
        panel.barh(
            place,
            work,
            left=fixed,
            color=color(0),
            height=0.7,
            alpha=0.75,
            label="work" if place == 0 else None,
        )
        measured = dict(zip(line.batch_sizes, line.times_ns, strict=True)).get(batch_size)
        end = fixed + work
        if measured is not None:
            panel.plot(measured * 1e-9 * scale, place, "D", color="black", markersize=3)
            end = max(end, measured * 1e-9 * scale)
        panel.annotate(f"  {line.share(batch_size):.0%}", (end, place), va="center", fontsize=7, color=MUTED)
    panel.set_yticks(range(len(ordered)), [label(line) for line in ordered], fontsize=8)
    panel.set_ylim(len(ordered) - 0.4, -0.6)
    panel.set_xlabel(f"step of {batch_size} samples [{unit}]   (percent: overhead; point: measured)")
    panel.grid(axis="x", alpha=0.25)
    panel.legend(loc="upper right", fontsize=8, frameon=False)
    panel.set_title(title or "Overhead and work", loc="left", fontsize=11)
    return figure


def label(line: Overhead) -> str:
    """'jax@0.12.0.1 jit'."""
    words = [str(line.axes.get("backend")), str(line.axes.get("mode") or "")]
    return " ".join(word for word in words if word)
