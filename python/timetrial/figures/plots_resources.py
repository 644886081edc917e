"""Memory and processors along a launch: one clock, phases marked, a band over launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.analysis.resources import Aligned, Curves, Floats, aligned
from timetrial.errors import InputError
from timetrial.figures.plots_data import case_labels
from timetrial.figures.plots_style import MUTED, QUESTIONS, color, ink, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from timetrial.results.results import Results

MOST_CASES = 6  # side by side
_MB = float(1 << 20)
_AROUND = 10  # points of 400
_CLOSEST = 0.045  # labels of phases, as a share of the width: those nearer are written together


@dataclass(frozen=True)
class CaseResources:
    """A case, and its launches that were looked at."""

    label: str
    launches: list[Curves]


def resource_cases(results: Results) -> list[CaseResources]:
    """In the order of the table, each with launches of one purpose. InputError: nobody looked at any, or
    there are too many for one figure."""
    found = []
    for row, label in zip(results.rows, case_labels(results.rows), strict=True):
        known = [(one.record, curves) for one in results.launches_of(row) if (curves := one.curves())]
        fine = [one for one in known if one[0].outcome == "ok"] or known
        for purpose in ("resources", "learning", "speed", "profile", "proof"):
            launches = [curves for record, curves in fine if record.purpose == purpose]
            if launches:
                found.append(CaseResources(label, launches))
                break
    if not found:
        raise InputError(
            "No launch of these results was looked at along its time. resource_launches=3 makes launches for "
            "that, and learning launches have curves by themselves, unless samples.hz=0 was asked."
        )
    if len(found) > MOST_CASES:
        raise InputError(
            f"{len(found)} cases have curves; a figure has room for {MOST_CASES}: choose by sel()."
        )
    return found


def resources_figure(cases: Sequence[CaseResources], title: str = "") -> Figure:
    """Above memory, below processors; a column for each case."""
    width = max(7.0, 1.0 + 3.6 * len(cases))
    figure, panels = new_figure(width, 6.0, rows=2, columns=len(cases), sharex="col", sharey="row")
    for place, case in enumerate(cases):
        together = aligned(case.launches, ("private_bytes", "whole_bytes", "peak_bytes", "cores", "waiting"))
        _draw_memory(panels[place], together, place)
        _draw_cores(panels[len(cases) + place], together, place)
        _mark_phases(panels[place], panels[len(cases) + place], case.launches[0], together)
        own = 100 * max(one.own_cores for one in case.launches)
        launches = f"{together.launches} launch{'es' if together.launches > 1 else ''}"
        panels[place].set_title(
            f"{case.label}\n{launches}, {_rate(case)}, {own:.2f} % of a core for it", fontsize=10
        )
        panels[len(cases) + place].set_xlabel("time since its start [s]")
    panels[0].set_ylabel("memory [MB]")
    panels[len(cases)].set_ylabel("processors used")
    for panel in panels:
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.25)
    figure.suptitle(title or QUESTIONS["resources"], x=0.01, ha="left", fontsize=12)
    _add_legend(figure, panels, len(cases))
    return figure


def _add_legend(figure: Figure, panels: Sequence[Axes], cases: int) -> None:
    """What has another color in each case has all of these."""
    from matplotlib.legend_handler import HandlerTuple

    lines: dict[str, dict[str, Line2D]] = {}  # name -> color -> one of those
    for line in (line for panel in panels for line in panel.lines):
        if not str(line.get_label()).startswith("_"):
            lines.setdefault(str(line.get_label()), {})[str(line.get_color())] = line
    handles: Any = [tuple(alike.values()) for alike in lines.values()]  # of that handler, no artists
    figure.legend(
        handles,
        list(lines),
        handler_map={tuple: HandlerTuple(ndivide=None)},
        handlelength=2 + cases / 2,
        loc="outside lower center",
        ncols=2 if cases < 3 else 4,
        fontsize=9,
        frameon=False,
    )


def _rate(case: CaseResources) -> str:
    looks = sum(len(one.seconds) - 1 for one in case.launches)
    spent = sum(float(one.seconds[-1] - one.seconds[0]) for one in case.launches)
    return f"{looks / spent:.0f} looks/s" if spent > 0 else "one look"


def _draw_memory(panel: Axes, found: Aligned, place: int) -> None:
    private, whole = found.bands["private_bytes"], found.bands["whole_bytes"]
    panel.fill_between(
        found.seconds, private.low / _MB, private.high / _MB, color=color(place), alpha=0.25, lw=0
    )
    panel.plot(found.seconds, private.middle / _MB, color=color(place), linewidth=1.8, label="private")
    panel.plot(
        found.seconds, whole.middle / _MB, color=MUTED, linewidth=1.2, label="with shared and mapped files"
    )
    peak = found.bands["peak_bytes"].high / _MB
    panel.plot(
        found.seconds,
        peak,
        color=ink(),
        linestyle=(0, (1, 1.5)),
        linewidth=1.2,
        label="kernel's high-water mark",
    )


def _draw_cores(panel: Axes, found: Aligned, place: int) -> None:
    used, waiting = found.bands["cores"], found.bands["waiting"]
    panel.fill_between(found.seconds, used.low, used.high, color=color(place), alpha=0.25, lw=0)
    panel.plot(found.seconds, used.middle, color=color(place), linewidth=1.8)
    panel.plot(
        found.seconds,
        _smooth(waiting.middle),
        color=MUTED,
        linestyle="dashed",
        linewidth=1.0,
        label="threads waiting for a processor",
    )


def _smooth(values: Floats) -> Floats:
    """Means around each point: the kernel counts a wait when it is over."""
    ends = np.pad(values, _AROUND, mode="edge")
    return np.convolve(ends, np.full(2 * _AROUND + 1, 1 / (2 * _AROUND + 1)), mode="valid")


def _mark_phases(above: Axes, below: Axes, first: Curves, found: Aligned) -> None:
    """Ends of phases as lines, named where there is room; evaluations as grounds."""
    whole = found.seconds[-1]
    names: list[tuple[float, list[str]]] = []
    for name, at in found.anchors.items():
        if name == "end":
            continue
        for panel in (above, below):
            panel.axvline(at, color=MUTED, linewidth=0.8, alpha=0.7)
        if names and at - names[-1][0] < _CLOSEST * whole:
            names[-1][1].append(name)
        else:
            names.append((at, [name]))
    for at, words in names:
        above.annotate(
            ", ".join(words), (at, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -3), rotation=90,
            textcoords="offset points", va="top", ha="left", fontsize=8, color=MUTED,
        )  # fmt: skip
    for span in first.spans:
        if span.name == "evaluation":
            for panel in (above, below):
                panel.axvspan(first.at(span.begin_ns), first.at(span.end_ns), color=MUTED, alpha=0.15, lw=0)
