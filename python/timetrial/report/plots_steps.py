"""Figures of step times: how they are distributed, and how they go along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.report.plots_data import BoolArray, CaseSteps, FloatArray
from timetrial.report.plots_style import MUTED, color, new_figure, plain_log_axis, time_unit, wide_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 20_000  # of a case: more would only be slow to draw


def step_times_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """One row per case: every steady step, their quartiles, and the median of each launch; others in gray.

    The launch is what is repeated, so the diamonds show how sure the estimate is, and the points do not.
    The axis spans the steady steps; what lies beyond it is marked at its edge.
    """
    scale, unit = _unit(cases)
    row = 0.75 if len(cases) <= 12 else 0.36  # inches: many cases must still fit on a page
    figure, (panel,) = new_figure(9.0, 1.6 + row * len(cases))
    steady = [launch.seconds[launch.steady] for case in cases for launch in case.launches]
    _time_axis(panel, np.concatenate(steady) * scale, scale, unit)
    left_out = sum(_draw_row(panel, case, row, scale) for row, case in enumerate(cases))
    panel.set_yticks(range(len(cases)), [case.label for case in cases])
    panel.set_ylim(len(cases) - 0.4, -0.5)
    panel.grid(axis="x", alpha=0.25)
    panel.set_title(title or "Step times", loc="left", fontsize=11)
    _legend(figure, f"{left_out:,} steps near the middle not drawn" if left_out else "")
    return figure


def step_series_figure(cases: Sequence[CaseSteps], title: str = "") -> Figure:
    """Step time against time since the launch's first step, one panel per case, one shade per launch."""
    figure, panels = new_figure(9.0, 1.0 + 1.7 * len(cases), rows=len(cases), sharex=True)
    for position, (panel, case) in enumerate(zip(panels, cases, strict=True)):
        left_out = _draw_series(panel, case, position)
        words = [_count(len(case.launches), "launch")]
        words += [f"{left_out:,} steps near the middle not drawn"] if left_out else []
        panel.set_title(f"{case.label} ({', '.join(words)})", loc="left", fontsize=10)
        panel.grid(alpha=0.25)
    panels[-1].set_xlabel("time since the launch's first step [s] (gray: warm-up, after a pause, disturbed)")
    figure.suptitle(title or "Step times along the launches", x=0.01, ha="left", fontsize=11)
    return figure


def _draw_series(panel: Axes, case: CaseSteps, position: int) -> int:
    """Draws the launches of a case; says how many steps were left out."""
    scale, unit = _unit([case])
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
    every = np.concatenate([launch.seconds for launch in case.launches]) * scale
    panel.set_ylabel(f"step [{unit}]")
    if wide_range([every.min(), every.max()]):
        panel.set_yscale("log")
        plain_log_axis(panel.yaxis, every.min(), every.max(), 1 / scale)
        panel.set_ylabel("step")
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

    quarter, middle, three_quarters = np.quantile(seconds[steady], [0.25, 0.5, 0.75]) * scale
    panel.plot([quarter, three_quarters], [row - 0.12] * 2, color="black", linewidth=5, alpha=0.35)
    panel.plot([middle] * 2, [row - 0.3, row + 0.06], color="black", linewidth=1.5)
    medians = np.array([launch.median_seconds() for launch in case.launches]) * scale
    heights = np.full(len(medians), row + 0.13)
    panel.plot(medians, heights, "D", color=color(row), markersize=4, markeredgecolor="white")
    return len(seconds) - int(shown.sum()) - int(others.sum())


def _legend(figure: Figure, note: str) -> None:
    from matplotlib.lines import Line2D

    gray: dict[str, Any] = {"linestyle": "", "color": MUTED, "markersize": 4}
    black: dict[str, Any] = {"linestyle": "", "color": "black"}
    entries = [
        Line2D([], [], marker=".", alpha=0.6, label="steady step", **black),
        Line2D([], [], color="black", linewidth=5, alpha=0.35, label="their middle half"),
        Line2D([], [], marker="|", markersize=9, label="their median", **black),
        Line2D([], [], marker="D", markersize=4, label="median of a launch", **black),
        Line2D([], [], marker="x", label="warm-up, after a pause, disturbed", **gray),
        Line2D([], [], marker=">", label="beyond the axis", **gray),
    ]
    if note:
        entries.append(Line2D([], [], linestyle="", label=note))
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=4,
        fontsize=8,
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
    return time_unit(min(launch.median_seconds() for case in cases for launch in case.launches))


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}es"
