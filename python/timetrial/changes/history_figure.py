"""A history in a figure: numbers with their intervals over time, one panel per name.

What was measured on different machines, or on other versions of what it stands on, is joined by no line: a
break is drawn, with what changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.changes.facts import changes_between
from timetrial.changes.history_table import short_name
from timetrial.errors import InputError
from timetrial.figures.plots_style import MUTED, color, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.changes.entry import Entry
    from timetrial.changes.history import History

MOST_PANELS = 20
MOST_POINTS = 400  # of a panel: the last ones
MOST_BREAKS = 6  # that are named in a panel
FAILED = "failed: no number"
_HEIGHT = 2.1  # inches per panel
_SCALES = {"ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")), "bytes": ((2**30, "GB"), (2**20, "MB"))}


def history_figure(history: History) -> Figure:
    """One panel per name and metric, on one axis of time. InputError: there is no number to draw."""
    series: dict[tuple[str, str, str | None], list[Entry]] = {}
    for one in history.entries:
        series.setdefault(one.series, []).append(one)
    drawn = {key: found for key, found in series.items() if any(one.estimate is not None for one in found)}
    if not drawn:
        raise InputError(f"'{history.path}' has no number to draw: everything in it failed.")
    shown = list(drawn.values())[:MOST_PANELS]
    figure, panels = new_figure(9.5, 0.7 + _HEIGHT * len(shown), len(shown), 1, sharex=True)
    machines = list(dict.fromkeys(one.machine_id for one in history.entries))
    for panel, found in zip(panels, shown, strict=True):
        _panel(panel, found[-MOST_POINTS:], machines, len(found))
    figure.autofmt_xdate(rotation=0, ha="center")
    said = "points: estimates with their intervals · dashed: another machine or environment from here on"
    if len(drawn) > len(shown):
        said += f" · {len(drawn) - len(shown)} more series are not drawn: choose by name"
    handles, labels = [], []
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=8, frameon=False, title=said,
                  title_fontsize=8, alignment="left")  # fmt: skip
    figure.suptitle(f"What was measured over time: {history.path.name}", x=0.01, ha="left", fontsize=11)
    return figure


def _panel(panel: Axes, found: Sequence[Entry], machines: Sequence[str], count: int) -> None:
    from matplotlib.dates import date2num

    scale, unit = _unit(found)
    label = unit if found[0].against is None else f"ratio to\n{short_name_of(found[0].against)}"
    panel.set_ylabel(label, fontsize=8)
    hidden = f", the last {len(found)} of {count}" if count > len(found) else ""
    good = "lower is better" if found[0].direction == "lower" else "higher is better"
    panel.set_title(
        f"{short_name(found[0], 90)}, {found[0].metric}, {good}{hidden}", loc="left", fontsize=8.5
    )
    panel.grid(axis="y", alpha=0.2)
    for run in _runs(found):
        _points(panel, run, scale, machines)
    named = 0
    for before, after in itertools.pairwise(found):
        if before.place == after.place:
            continue
        middle = before.when + (after.when - before.when) / 2
        moment = float(date2num(middle))  # type: ignore[no-untyped-call]
        panel.axvline(moment, color=MUTED, lw=0.8, ls="--")
        if named < MOST_BREAKS:
            panel.annotate(
                _break_words(before, after), (moment, 1.0), xycoords=("data", "axes fraction"), fontsize=6.5,
                color=MUTED, rotation=90, va="top", ha="right",
            )  # fmt: skip
        named += 1
    failed = [one.when for one in found if one.estimate is None]
    if failed:
        low = panel.get_xaxis_transform()
        panel.plot(failed, [0.04] * len(failed), "x", color="black", ms=5, transform=low, label=FAILED)  # type: ignore[arg-type]
    panel.margins(x=0.03, y=0.25)


def _points(panel: Axes, run: Sequence[Entry], scale: float, machines: Sequence[str]) -> None:
    numbers = [one for one in run if one.estimate is not None]
    if not numbers:
        return
    place = machines.index(numbers[0].machine_id)
    name = numbers[0].machine.get("cpu", "a machine")
    label = f"{name} ({numbers[0].machine_id[:6]})"
    values = [one.estimate / scale for one in numbers if one.estimate is not None]
    below = [
        (one.estimate - one.low) / scale if one.low is not None and one.estimate else 0.0 for one in numbers
    ]
    above = [
        (one.high - one.estimate) / scale if one.high is not None and one.estimate else 0.0 for one in numbers
    ]
    panel.errorbar(
        [one.when for one in numbers], values,  # type: ignore[arg-type]
        yerr=[[max(0.0, one) for one in below], [max(0.0, one) for one in above]],
        fmt="o-", ms=3.5, lw=0.8, elinewidth=1.2, capsize=2, color=color(place), label=label,
    )  # fmt: skip


def _runs(found: Sequence[Entry]) -> list[list[Entry]]:
    """Stretches of one machine and one environment."""
    runs: list[list[Entry]] = []
    for one in found:
        if runs and runs[-1][-1].place == one.place:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _break_words(before: Entry, after: Entry) -> str:
    """'another machine', or the first thing that changed."""
    if before.machine_id != after.machine_id:
        return "another machine"
    changed = changes_between(before.environment, after.environment)
    first = next(iter(changed), "environment")
    return first[:24] + (f" +{len(changed) - 1}" if len(changed) > 1 else "")


def _unit(found: Sequence[Entry]) -> tuple[float, str]:
    values = sorted(one.estimate for one in found if one.estimate is not None)
    middle = abs(values[len(values) // 2]) if values else 1.0
    for scale, unit in _SCALES.get(found[0].unit, ()):
        if middle >= scale:
            return scale, unit
    return 1.0, found[0].unit


def short_name_of(name: str, longest: int = 24) -> str:
    """The first word of a name."""
    first = name.split()[0] if name.split() else name
    return first if len(first) <= longest else f"{first[: longest - 3]}..."
