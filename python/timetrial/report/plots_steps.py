"""Figures of step times: how they are distributed, and how they go along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.report.plots_data import BoolArray, CaseSteps, FloatArray
from timetrial.report.plots_style import MUTED, color, new_figure, plain_log_axis, time_unit, wide_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 20_000  # of a case: more would only be slow to draw


def step_times_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """One row per case: every steady step, their quartiles, and the median of each launch; others in gray.

    The launch is what is repeated, so the diamonds show how sure the estimate is, and the points do not.
    """
    scale, unit = _unit(cases)
    figure, (panel,) = new_figure(9.0, 1.6 + 0.75 * len(cases))
    drawn = [_draw_row(panel, case, row, scale) for row, case in enumerate(cases)]
    every = np.concatenate([launch.seconds for case in cases for launch in case.launches]) * scale
    _time_axis(panel, every)
    panel.set_yticks(range(len(cases)), [case.label for case in cases])
    panel.set_ylim(len(cases) - 0.4, -0.5)
    panel.set_xlabel(f"step time [{unit}]")
    panel.grid(axis="x", alpha=0.25)
    panel.set_title(title or "Step times", loc="left", fontsize=11)
    left_out = sum(drawn)
    _legend(figure, f"{left_out:,} steps near the middle not drawn" if left_out else "")
    return figure


def step_series_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """Step time against time since the launch's first step, one panel per case, one line per launch."""
    scale, unit = _unit(cases)
    figure, panels = new_figure(9.0, 1.0 + 1.7 * len(cases), rows=len(cases), sharex=True)
    for position, (panel, case) in enumerate(zip(panels, cases, strict=True)):
        for number, launch in enumerate(case.launches):
            kept = _thin(
                launch.seconds, np.ones(len(launch.seconds), np.bool_), MOST_POINTS // len(case.launches)
            )
            times, steps, steady = launch.at_seconds[kept], launch.seconds[kept] * scale, launch.steady[kept]
            alpha = 0.35 + 0.65 * (number + 1) / len(case.launches)
            panel.plot(times[~steady], steps[~steady], "x", color=MUTED, markersize=3, rasterized=True)
            panel.plot(
                times[steady],
                steps[steady],
                ".",
                color=color(position),
                alpha=alpha,
                markersize=2,
                rasterized=True,
            )
        every = np.concatenate([launch.seconds for launch in case.launches]) * scale
        if wide_range(every.tolist()):
            panel.set_yscale("log")
            plain_log_axis(panel.yaxis, every.min(), every.max())
        panel.set_ylabel(f"step [{unit}]")
        panel.set_title(f"{case.label} ({_count(len(case.launches), 'launch')})", loc="left", fontsize=10)
        panel.grid(alpha=0.25)
    panels[-1].set_xlabel("time since the launch's first step [s]   (gray: warm-up, or after a pause)")
    figure.suptitle(title or "Step times along the launches", x=0.01, ha="left", fontsize=11)
    return figure


def _draw_row(panel: object, case: CaseSteps, row: int, scale: float) -> int:
    """Draws a case at height `row`; says how many steps were left out."""
    from matplotlib.axes import Axes

    assert isinstance(panel, Axes)
    seconds = np.concatenate([launch.seconds for launch in case.launches])
    steady = np.concatenate([launch.steady for launch in case.launches])
    left_out = 0
    heights = np.random.default_rng(0).uniform(-0.5, 0.5, len(seconds))
    for chosen, shade, center, spread in ((steady, color(row), -0.12, 0.3), (~steady, MUTED, 0.27, 0.12)):
        kept = _thin(seconds, chosen, MOST_POINTS)
        left_out += int(chosen.sum()) - int(kept.sum())
        panel.plot(
            seconds[kept] * scale,
            row + center + spread * heights[kept],
            "." if chosen is steady else "x",
            color=shade,
            alpha=0.35 if chosen is steady else 0.6,
            markersize=3,
            markeredgewidth=0.6,
            rasterized=True,
        )
    low, middle, high = np.quantile(seconds[steady], [0.25, 0.5, 0.75]) * scale
    panel.plot([low, high], [row - 0.12] * 2, color="black", linewidth=5, alpha=0.35, solid_capstyle="butt")
    panel.plot([middle] * 2, [row - 0.3, row + 0.06], color="black", linewidth=1.5)
    medians = np.array([launch.median_seconds() for launch in case.launches]) * scale
    panel.plot(
        medians,
        np.full(len(medians), row + 0.13),
        "D",
        color=color(row),
        markersize=4,
        markeredgecolor="white",
    )
    return left_out


def _legend(figure: Figure, note: str) -> None:
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], marker=".", linestyle="", color="black", alpha=0.6, label="steady step"),
        Line2D([], [], color="black", linewidth=5, alpha=0.35, label="their middle half, median"),
        Line2D([], [], marker="D", linestyle="", color="black", markersize=4, label="median of a launch"),
        Line2D(
            [], [], marker="x", linestyle="", color=MUTED, markersize=4, label="warm-up, or after a pause"
        ),
    ]
    if note:
        entries.append(Line2D([], [], linestyle="", label=note))
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), fontsize=8, frameon=False)


def _thin(seconds: FloatArray, chosen: BoolArray, most: int) -> BoolArray:
    """At most so many of the chosen steps: the longest and shortest all, of the others a fair sample."""
    indices = np.flatnonzero(chosen)
    if len(indices) <= most:
        return chosen
    by_time = indices[np.argsort(seconds[indices], kind="stable")]
    ends = most // 4
    middle = np.random.default_rng(0).choice(by_time[ends:-ends], most - 2 * ends, replace=False)
    kept = np.zeros(len(seconds), np.bool_)
    kept[np.concatenate([by_time[:ends], by_time[-ends:], middle])] = True
    return kept


def _time_axis(panel: object, values: FloatArray) -> None:
    from matplotlib.axes import Axes

    assert isinstance(panel, Axes)
    low, high = float(values.min()), float(values.max())
    if wide_range([low, high]):
        panel.set_xscale("log")
        plain_log_axis(panel.xaxis, low, high)
        panel.set_xlim(low / 1.15, high * 1.15)
    else:
        panel.set_xlim(max(0.0, low - 0.08 * (high - low)), high + 0.08 * (high - low) or 1.0)


def _unit(cases: Sequence[CaseSteps]) -> tuple[float, str]:
    return time_unit(min(launch.median_seconds() for case in cases for launch in case.launches))


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}es"
