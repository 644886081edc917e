"""Figures of learning: loss and accuracy against steps and against time.

Against steps, equal contenders lie on each other: that is the check. Against time they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from timetrial.figures.plots_data import CaseLearning, FloatArray, LearningRun
from timetrial.figures.plots_style import QUESTIONS, color, dashes, new_figure, plain_log_axis, wide_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Against = Literal["steps", "time"]
POINTS = 60  # a loss curve is drawn as the means of about so many groups of steps


def learning_figure(cases: Sequence[CaseLearning], title: str = "") -> Figure:
    """Four panels: loss above, accuracy below; against steps on the left, against time on the right."""
    figure, panels = new_figure(10.0, 6.5, rows=2, columns=2, sharex="col", sharey="row")
    _draw_loss(panels[0], cases, "steps")
    _draw_loss(panels[1], cases, "time")
    _draw_accuracy(panels[2], cases, "steps")
    _draw_accuracy(panels[3], cases, "time")
    for panel in (panels[1], panels[3]):
        panel.set_ylabel("")
    for panel in panels[:2]:
        panel.set_xlabel("")
    return _finish(figure, panels[0], cases, title or QUESTIONS["learning"])


def loss_figure(cases: Sequence[CaseLearning], title: str = "") -> Figure:
    """Training loss against steps and against time."""
    figure, panels = new_figure(10.0, 3.8, columns=2, sharey=True)
    _draw_loss(panels[0], cases, "steps")
    _draw_loss(panels[1], cases, "time")
    panels[1].set_ylabel("")
    return _finish(figure, panels[0], cases, title or QUESTIONS["loss"])


def accuracy_figure(cases: Sequence[CaseLearning], title: str = "") -> Figure:
    """Test accuracy against steps and against time."""
    figure, panels = new_figure(10.0, 3.8, columns=2, sharey=True)
    _draw_accuracy(panels[0], cases, "steps")
    _draw_accuracy(panels[1], cases, "time")
    panels[1].set_ylabel("")
    return _finish(figure, panels[0], cases, title or QUESTIONS["accuracy"])


def _draw_loss(panel: Axes, cases: Sequence[CaseLearning], against: Against) -> None:
    shown: list[float] = []
    for position, case in enumerate(cases):
        curves = [_loss_curve(run, against) for run in case.runs]
        _draw_curves(panel, curves, case.label, position)
        shown += [float(value) for _, loss in curves for value in loss]
    if wide_range(shown):
        panel.set_yscale("log")
        finite = [value for value in shown if np.isfinite(value)]
        plain_log_axis(panel.yaxis, min(finite), max(finite))
    panel.set_ylabel("training loss [nats per sample]")
    _horizontal(panel, against)


def _draw_accuracy(panel: Axes, cases: Sequence[CaseLearning], against: Against) -> None:
    for position, case in enumerate(cases):
        curves = [_accuracy_curve(run, against) for run in case.runs if len(run.accuracy)]
        _draw_curves(panel, curves, case.label, position, marker=".")
    panel.set_ylabel("test accuracy [%]")
    _horizontal(panel, against)


def _draw_curves(
    panel: Axes, curves: list[tuple[FloatArray, FloatArray]], label: str, position: int, marker: str = ""
) -> None:
    """Thin: each seed. Thick: their mean, at the mean of their times."""
    for x, y in curves:
        panel.plot(x, y, color=color(position), linewidth=0.7, alpha=0.35)
    if curves:
        length = min(len(x) for x, _ in curves)
        x = np.mean([x[:length] for x, _ in curves], axis=0)
        y = np.mean([y[:length] for _, y in curves], axis=0)
        panel.plot(
            x, y, color=color(position), linestyle=dashes(position), linewidth=1.8, marker=marker, label=label
        )


def _loss_curve(run: LearningRun, against: Against) -> tuple[FloatArray, FloatArray]:
    """Means of groups of steps, placed at the end of each group."""
    size = max(1, len(run.loss) // POINTS)
    groups = len(run.loss) // size
    ends = np.arange(1, groups + 1) * size
    means = run.loss[: groups * size].reshape(groups, size).mean(axis=1)
    return _place(run, ends, against), means


def _accuracy_curve(run: LearningRun, against: Against) -> tuple[FloatArray, FloatArray]:
    return _place(run, run.evaluated_after, against), 100.0 * run.accuracy


def _place(
    run: LearningRun, steps: np.ndarray[tuple[int, ...], np.dtype[np.int64]], against: Against
) -> FloatArray:
    return steps.astype(np.float64) if against == "steps" else run.seconds_at(steps)


def _horizontal(panel: Axes, against: Against) -> None:
    panel.set_xlabel("steps" if against == "steps" else "training time [s]: steps at the row's step time")
    panel.locator_params(axis="x", nbins=6)
    panel.set_xlim(left=0)
    panel.grid(alpha=0.25)


def _finish(figure: Figure, panel: Axes, cases: Sequence[CaseLearning], title: str) -> Figure:
    fewest, most = (choose(len(case.runs) for case in cases) for choose in (min, max))
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    note = "one seed" if most == 1 else f"thin: each of {seeds} seeds, thick: their mean"
    figure.suptitle(f"{title}   ({note})", x=0.01, ha="left", fontsize=12)
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(4, len(cases)), fontsize=10, frameon=False
    )
    return figure
