"""Memory and CPU time of a step over its size: what was measured, and the lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.figures.plots_style import QUESTIONS, color, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.scaling.lines import Lines, SizeLine

_PANELS = {"memory": ("memory [MB]", float(1 << 20)), "cpu_time": ("CPU time of a step [ms]", 1e6)}


def lines_figure(lines: Lines, title: str = "") -> Figure:
    """A panel for memory and one for CPU time; a line for each contender, and around it where another value
    is to be expected (95 %)."""
    names = [name for name in _PANELS if any(one.quantity == name for one in lines.lines)]
    figure, panels = new_figure(1.0 + 4.6 * len(names), 4.4, columns=len(names))
    for panel, name in zip(panels, names, strict=True):
        _draw(panel, [one for one in lines.lines if one.quantity == name], _PANELS[name][1])
        panel.set_ylabel(_PANELS[name][0])
        panel.set_xlabel(lines.over.replace("_", " "))
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.25)
    figure.suptitle(title or QUESTIONS["lines"], x=0.01, ha="left", fontsize=12)
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def _draw(panel: Axes, lines: Sequence[SizeLine], scale: float) -> None:
    top = max(value for one in lines for value in one.values) / scale
    for place, one in enumerate(lines):
        sizes = np.linspace(0.0, max(one.sizes), 100)
        expected = [one.line.at(size) for size in sizes]
        low, high = (np.array([getattr(part, end) for part in expected]) / scale for end in ("low", "high"))
        panel.fill_between(sizes, low, np.minimum(high, 2 * top), color=color(place), alpha=0.15, lw=0)
        panel.plot(sizes, [part.estimate / scale for part in expected], color=color(place), linewidth=1.5)
        panel.plot(
            one.sizes,
            [value / scale for value in one.values],
            "o",
            color=color(place),
            markersize=4,
            label=one.words,
        )
    panel.set_ylim(top=1.15 * top)
