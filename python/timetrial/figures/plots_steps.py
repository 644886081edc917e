"""Figures of step times: how they are distributed, and how they go along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.figures.plots_data import BoolArray, CaseSteps, FloatArray
from timetrial.figures.plots_style import (
    MUTED,
    QUESTIONS,
    color,
    ground,
    ink,
    new_figure,
    plain_log_axis,
    time_unit,
    wide_range,
)
from timetrial.report.numbers import WIDEST, duration, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.statistics.intervals import Estimate

MOST_POINTS = 20_000  # of a case: more would only be slow to draw


def step_times_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """One row per case: every steady step and their middle half; others in gray; the step time of each
    launch; and, as a line with its interval, the step time of the table.

    The launch is what is repeated, so the diamonds show how sure that is, and the points do not.
    The axis spans the steady steps; what lies beyond it is marked at its edge.
    """
    scale, unit = _unit(cases)
    row = 0.75 if len(cases) <= 12 else 0.42  # inches: many cases must still fit on a page
    figure, (panel,) = new_figure(9.0, 1.6 + row * len(cases))
    steady = [launch.seconds[launch.steady] for case in cases for launch in case.launches]
    intervals = [_reach(case.step_time) for case in cases]
    _time_axis(panel, np.concatenate([*steady, *intervals]) * scale, scale, unit)
    left_out = sum(_draw_row(panel, case, row, scale) for row, case in enumerate(cases))
    panel.set_yticks(range(len(cases)), [row_label(case) for case in cases])
    panel.set_ylim(len(cases) - 0.4, -0.5)
    panel.grid(axis="x", alpha=0.25)
    panel.set_title(title or QUESTIONS["step_times"], loc="left", fontsize=12)
    _legend(figure, f"{left_out:,} steps near the middle not drawn" if left_out else "")
    return figure


def step_series_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """Step time against time since the launch's first step, one panel per case on one scale, one shade per
    launch."""
    figure, panels = new_figure(9.0, 1.0 + 1.7 * len(cases), rows=len(cases), sharex=True, sharey=True)
    scale, unit = _unit(cases)
    for position, (panel, case) in enumerate(zip(panels, cases, strict=True)):
        left_out = _draw_series(panel, case, position, scale)
        words = [_count(len(case.launches), "launch")]
        words += [f"{left_out:,} steps near the middle not drawn"] if left_out else []
        panel.set_title(f"{case.label} ({', '.join(words)})", loc="left", fontsize=10)
        panel.grid(alpha=0.25)
        panel.set_ylabel(f"step [{unit}]")
    every = np.concatenate([launch.seconds for case in cases for launch in case.launches]) * scale
    if wide_range([every.min(), every.max()]):
        for panel in panels:
            panel.set_yscale("log")
            panel.set_ylabel("step")
            plain_log_axis(panel.yaxis, every.min(), every.max(), 1 / scale)
    panels[-1].set_xlabel("time since the launch's first step [s] (gray: warm-up, after a pause, disturbed)")
    figure.suptitle(title or QUESTIONS["step_series"], x=0.01, ha="left", fontsize=12)
    return figure


def _draw_series(panel: Axes, case: CaseSteps, position: int, scale: float) -> int:
    """Draws the launches of a case; says how many steps were left out."""
    left_out = 0
    for number, launch in enumerate(case.launches):
        everything = np.ones(len(launch.seconds), np.bool_)
        kept = _thin(launch.seconds, everything, MOST_POINTS // len(case.launches))
        left_out += int((~kept).sum())
        times, steps, steady = launch.at_seconds[kept], launch.seconds[kept] * scale, launch.steady[kept]
        style: dict[str, Any] = {"rasterized": True, "linestyle": ""}
        panel.plot(times[~steady], steps[~steady], marker="x", markersize=3, color=MUTED, **style)
        style |= {"color": color(position), "alpha": 0.35 + 0.65 * (number + 1) / len(case.launches)}
        panel.plot(times[steady], steps[steady], marker=".", markersize=2, **style)
    return left_out


def _draw_row(panel: Axes, case: CaseSteps, row: int, scale: float) -> int:
    """Draws a case at height `row`; says how many steps were left out."""
    seconds = np.concatenate([launch.seconds for launch in case.launches])
    steady = np.concatenate([launch.steady for launch in case.launches])
    heights = np.random.default_rng(0).uniform(-0.5, 0.5, len(seconds))
    shown = _thin(seconds, steady, MOST_POINTS)
    places = row - 0.12 + 0.3 * heights[shown]
    style: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0.6, "rasterized": True, "linestyle": ""}
    panel.plot(seconds[shown] * scale, places, marker=".", color=color(row), alpha=0.35, **style)

    others = _thin(seconds, ~steady, MOST_POINTS)
    times, places = seconds[others] * scale, row + 0.27 + 0.12 * heights[others]
    low, high = panel.get_xlim()
    inside = (times >= low) & (times <= high)
    style |= {"color": MUTED, "alpha": 0.6}
    panel.plot(times[inside], places[inside], marker="x", **style)
    style |= {"transform": panel.get_yaxis_transform()}  # x from 0 to 1 across the panel
    panel.plot(np.full(int((times > high).sum()), 0.99), places[times > high], marker=">", **style)
    panel.plot(np.full(int((times < low).sum()), 0.01), places[times < low], marker="<", **style)

    quarter, three_quarters = np.quantile(seconds[steady], [0.25, 0.75]) * scale
    panel.plot([quarter, three_quarters], [row - 0.12] * 2, color=ink(), linewidth=5, alpha=0.35)
    if case.step_time is not None:
        low, middle, high = (
            np.nan if ns is None else ns * 1e-9 * scale
            for ns in (case.step_time.low, case.step_time.estimate, case.step_time.high)
        )
        panel.plot([middle] * 2, [row - 0.34, row + 0.24], color=ink(), linewidth=1.8, label="_estimate")
        panel.plot([low, high], [row + 0.24] * 2, color=ink(), linewidth=1.8, label="_interval")
    step_times = np.array([launch.step_seconds for launch in case.launches]) * scale
    heights = np.full(len(step_times), row + 0.13)
    panel.plot(step_times, heights, "D", color=color(row), markersize=4, markeredgecolor=ground())
    return len(seconds) - int(shown.sum()) - int(others.sum())


def _reach(step_time: Estimate | None) -> FloatArray:
    """What an axis must hold of it, in seconds: not an interval that says nothing."""
    if step_time is None:
        return np.empty(0)
    half = step_time.half_width
    ends = [step_time.low, step_time.high] if half is not None and half <= WIDEST else []
    return np.array([step_time.estimate, *(end for end in ends if end is not None)]) * 1e-9


def row_label(case: CaseSteps) -> str:
    """The case, and below it its number in the table."""
    if case.step_time is None:
        return case.label
    return f"{case.label}\n{duration(case.step_time.estimate)} {plus_minus(case.step_time)}".rstrip()


def _legend(figure: Figure, note: str) -> None:
    """Swatches look like what they stand for: points without a line, bars without a point."""
    from matplotlib.lines import Line2D

    gray: dict[str, Any] = {"linestyle": "", "color": MUTED, "markersize": 4}
    dark: dict[str, Any] = {"linestyle": "", "color": ink()}
    entries = [
        Line2D([], [], marker=".", markersize=5, alpha=0.6, label="steady step", **dark),
        Line2D(
            [], [], color=ink(), linewidth=5, alpha=0.35, solid_capstyle="butt", label="their middle half"
        ),
        Line2D([], [], marker="D", markersize=4, label="step time of a launch", **dark),
        Line2D(
            [], [], marker="|", markersize=10, markeredgewidth=1.8, label="step time of the table", **dark
        ),
        Line2D([], [], color=ink(), linewidth=1.8, label="its interval"),
        Line2D([], [], marker="x", label="warm-up, after a pause, disturbed", **gray),
        Line2D([], [], marker=">", label="beyond the axis", **gray),
    ]
    if note:
        entries.append(Line2D([], [], linestyle="", label=note))
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=4,
        fontsize=9,
        columnspacing=1.2,
        handletextpad=0.4,
        frameon=False,
    )


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


def _time_axis(panel: Axes, values: FloatArray, scale: float, unit: str) -> None:
    low, high = float(values.min()), float(values.max())
    if wide_range([low, high]):
        panel.set_xscale("log")
        plain_log_axis(panel.xaxis, low, high, 1 / scale)
        panel.set_xlim(low / 1.15, high * 1.15)
        panel.set_xlabel("step time")
    else:
        margin = max(0.08 * (high - low), 0.01 * high, 1e-9)
        panel.set_xlim(max(0.0, low - margin), high + margin)
        panel.set_xlabel(f"step time [{unit}]")


def _unit(cases: Sequence[CaseSteps]) -> tuple[float, str]:
    return time_unit(min(launch.step_seconds for case in cases for launch in case.launches))


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}es"
