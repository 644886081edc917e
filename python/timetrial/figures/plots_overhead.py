"""The figure of overhead against work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.analysis.overhead import Overhead
from timetrial.figures.plots_style import MUTED, QUESTIONS, color, ink, new_figure, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNDIVIDED = "whole step: too few launches of each size to divide it"


def overhead_figure(lines: Sequence[Overhead], batch_size: int, title: str = "") -> Figure:
    """One bar per contender, fastest first: what a step of `batch_size` samples takes, and of it what it
    costs without any, with the interval of that; without an interval a bar is not divided. The point is the
    measured time, where that size was measured."""
    ordered = sorted(lines, key=lambda line: line.overhead_ns + line.per_sample_ns * batch_size)
    scale, unit = time_unit((ordered[0].overhead_ns + ordered[0].per_sample_ns * batch_size) * 1e-9)
    figure, (panel,) = new_figure(9.0, 1.7 + 0.27 * len(ordered))
    for place, line in enumerate(ordered):
        whole = (line.overhead_ns + line.per_sample_ns * batch_size) * 1e-9 * scale
        end = whole
        share = ""
        if line.interval_ns is None:
            panel.barh(place, whole, color=MUTED, height=0.7, alpha=0.5, label=_UNDIVIDED)
        else:
            fixed = line.overhead_ns * 1e-9 * scale
            low, high = (ns * 1e-9 * scale for ns in line.interval_ns)
            panel.barh(place, fixed, color=color(1), height=0.7, label="overhead")
            panel.barh(place, whole - fixed, left=fixed, color=color(0), height=0.7, alpha=0.75, label="work")
            panel.plot([low, high], [place] * 2, color=ink(), lw=1.8, label="95 % interval of the overhead")
            end = max(end, high)
            ends = (100 * min(1.0, at / whole) for at in (low, high))
            share = f"{line.share(batch_size):.0%} [{', '.join(f'{at:.0f}' for at in ends)}]"
        measured = dict(zip(line.batch_sizes, line.times_ns, strict=True)).get(batch_size)
        if measured is not None:
            panel.plot(measured * 1e-9 * scale, place, "D", color=ink(), markersize=3)
            end = max(end, measured * 1e-9 * scale)
        panel.annotate(f"  {share}", (end, place), va="center", fontsize=9)
    panel.set_yticks(range(len(ordered)), [label(line) for line in ordered], fontsize=9)
    panel.set_ylim(len(ordered) - 0.4, -0.6)
    panel.margins(x=0.12)
    panel.set_xlim(left=0)
    panel.set_xlabel(f"step of {batch_size} samples [{unit}]   (percent: overhead; point: measured)")
    panel.grid(axis="x", alpha=0.25)
    handles, words = panel.get_legend_handles_labels()
    once = dict(zip(words, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    panel.set_title(title or QUESTIONS["overhead"], loc="left", fontsize=12)
    return figure


def label(line: Overhead) -> str:
    """'jax@0.12.0.1 jit'."""
    words = [str(line.axes.get("backend")), str(line.axes.get("mode") or "")]
    return " ".join(word for word in words if word)
