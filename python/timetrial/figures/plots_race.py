"""A race in a figure: every pair as a point, and how the estimate settled while pairs came in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from timetrial.errors import InputError
from timetrial.figures.plots_style import MUTED, color, new_figure
from timetrial.statistics.trimmed import FEWEST, trimmed_location, trimmed_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.records.race import Stage
    from timetrial.results.race import Duel, Race
    from timetrial.statistics.verdict import Rule

_STAGES: tuple[tuple[Stage, str, str], ...] = (
    ("judge", "pairs of the verdict", "o"),
    ("confirm", "second, independent race", "D"),
)
_HEIGHT = 2.6  # inches per challenger


def race_figure(race: Race) -> Figure:
    """A row of two panels per challenger, on one scale. InputError: no pair has ended."""
    from matplotlib.ticker import MaxNLocator

    from timetrial.records.metric import METRICS
    from timetrial.report.race import verdict_words

    duels = [duel for duel in race.duels if duel.log_ratios]
    if not duels:
        raise InputError("This race has no pairs to draw: no pair has ended.")
    figure, panels = new_figure(
        9.5, 0.8 + _HEIGHT * len(duels), len(duels), 2, sharey=True, width_ratios=(3, 2)
    )
    for row, duel in enumerate(duels):
        points, trace = panels[2 * row], panels[2 * row + 1]
        _points(points, race, duel)
        _trace(trace, race.rule_of(duel.case), duel)
        points.set_title(f"{duel.challenger}: {verdict_words(race, duel)}", loc="left", fontsize=10)
        points.set_ylabel("against the base [%]")
    for panel in panels:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_ylim(_reach(race, duels))
    panels[-2].set_xlabel("pair of launches")
    panels[-1].set_xlabel("pairs so far, and what they say together")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=9, frameon=False)
    question = f"Does the {METRICS[race.metric].title} differ from {duels[0].base}'s?"
    figure.suptitle(question, x=0.01, ha="left", fontsize=12)
    return figure


def _points(panel: Axes, race: Race, duel: Duel) -> None:
    _bands(panel, race.rule)
    first = 1
    for place, (stage, words, mark) in enumerate(_STAGES):
        values = race.log_ratios(duel.case, stage)
        if not values:
            continue
        numbers = np.arange(first, first + len(values))
        panel.plot(numbers, _percent(values), mark, color=color(place), ms=4, label=words)
        first += len(values)
    if duel.effect is not None:
        low, high = 100 * duel.effect.low, 100 * duel.effect.high
        panel.axhspan(low, high, color=color(0), alpha=0.18, lw=0, label="estimate and its interval")
        panel.axhline(100 * duel.effect.estimate, color=color(0), lw=1.2)
    panel.margins(x=0.03)


def _trace(panel: Axes, rule: Rule, duel: Duel) -> None:
    """The estimate after each pair, and at each look the interval that it stood on."""
    _bands(panel, rule)
    values = duel.log_ratios
    counts = list(range(1, len(values) + 1))
    panel.plot(
        counts,
        _percent([float(trimmed_location(values[:count], rule.trim)) for count in counts]),
        color=color(0), lw=1.2,
    )  # fmt: skip
    for look in sorted(one for one in {*rule.looks, len(values)} if FEWEST <= one <= len(values)):
        limits = trimmed_mean(values[:look], rule.trim).interval(rule.confidence_at(look))
        low, high = _percent(list(limits))
        panel.vlines(look, low, high, color=color(0), lw=2.5, alpha=0.45)
    panel.set_xlim(0.5, len(values) + 0.5)
    panel.set_title(
        "An interval is drawn at each look. It widens\nwhere a new pair lies apart from the others.",
        loc="left", fontsize=8, color=MUTED,
    )  # fmt: skip


def _reach(race: Race, duels: list[Duel]) -> tuple[float, float]:
    """In percent, with room, of all points and intervals. Early intervals may be as wide as the sky."""
    found = [-100 * race.rule.equivalence, 100 * race.rule.equivalence]
    for duel in duels:
        for stage, _, _ in _STAGES:
            found += _percent(race.log_ratios(duel.case, stage))
        if duel.effect is not None:
            found += [100 * duel.effect.low, 100 * duel.effect.high]
    room = 0.08 * (max(found) - min(found))
    return min(found) - room, max(found) + room


def _bands(panel: Axes, rule: Rule) -> None:
    same, smallest = 100 * rule.equivalence, 100 * rule.min_effect
    panel.axhspan(-same, same, color=MUTED, alpha=0.15, lw=0, label=f"the same: within {same:g} %")
    panel.axhline(0, color=MUTED, lw=0.8)
    panel.axhline(-smallest, color=MUTED, lw=0.8, ls="--")
    panel.axhline(smallest, color=MUTED, lw=0.8, ls="--", label=f"smallest effect: {smallest:g} %")
    panel.grid(axis="y", alpha=0.2)


def _percent(log_ratios: list[float]) -> list[float]:
    return [100 * math.expm1(value) for value in log_ratios]
