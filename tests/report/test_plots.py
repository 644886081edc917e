"""Figures from known arrays: what is drawn is what was given, with labels and units on every axis."""

from __future__ import annotations

import dataclasses
import io
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import numpy as np
import pytest
from fakes import FakeEngine

from timetrial.analysis.step_times import step_times_of
from timetrial.errors import InputError, Unavailable
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.figures.plots_data import (
    CaseLearning,
    CaseSteps,
    LaunchSteps,
    LearningRun,
    case_labels,
    learning_cases,
    speed_cases,
)
from timetrial.figures.plots_learning import accuracy_figure, learning_figure, loss_figure
from timetrial.figures.plots_steps import MOST_POINTS, step_series_figure, step_times_figure
from timetrial.figures.plots_style import COLORS, QUESTIONS, time_unit, wide_range
from timetrial.report.numbers import duration, plus_minus
from timetrial.results.results import Results
from timetrial.statistics.intervals import Estimate


def launch(milliseconds: float, steps: int = 60, warmup: int = 10, seed: int = 0) -> LaunchSteps:
    random = np.random.default_rng(seed)
    seconds = milliseconds * 1e-3 * (1 + 0.02 * random.exponential(size=steps))
    seconds[:warmup] *= 2
    return LaunchSteps(
        seconds, np.cumsum(seconds), np.arange(steps) >= warmup, float(seconds[warmup:].mean())
    )


def learning(label: str, step_seconds: float, seeds: int = 2, steps: int = 264) -> CaseLearning:
    runs = []
    for seed in range(seeds):
        noise = np.random.default_rng(seed).uniform(0.8, 1.25, steps)
        evaluated = np.arange(22, steps + 1, 22)
        runs.append(
            LearningRun(
                seed=seed,
                step_seconds=step_seconds,
                loss=2.3 * np.exp(-np.arange(steps) / 40) * noise + 0.01,
                evaluated_after=evaluated,
                accuracy=1.0 - 0.6 * np.exp(-evaluated / 40) - 0.01 * seed,
            )
        )
    return CaseLearning(label, runs)


CASES = [
    CaseSteps("eigen, threads 1", [launch(9.0, seed=seed) for seed in range(3)]),
    CaseSteps("pytorch, threads 1", [launch(19.0, seed=seed) for seed in range(3)]),
]
LEARNING = [learning("eigen", 0.009), learning("pytorch", 0.019)]


def png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def line_points(panel: Any, marker: str) -> np.ndarray[Any, Any]:
    return np.sort(np.concatenate([line.get_xdata() for line in panel.lines if line.get_marker() == marker]))


def test_step_times_draws_every_step_and_marks_warm_up() -> None:
    figure = step_times_figure(CASES, "title")
    (panel,) = figure.axes
    everything = [(one.seconds, one.steady) for case in CASES for one in case.launches]
    steady = np.sort(np.concatenate([seconds[mask] for seconds, mask in everything])) * 1e3
    others = np.sort(np.concatenate([seconds[~mask] for seconds, mask in everything])) * 1e3
    np.testing.assert_allclose(line_points(panel, "."), steady)
    # Warm-up is all there: within the span of the steady steps by value, beyond it at the edge.
    low, high = panel.get_xlim()
    np.testing.assert_allclose(line_points(panel, "x"), others[(others >= low) & (others <= high)])
    assert len(line_points(panel, ">")) == (others > high).sum()
    assert 0 < (others > high).sum() < len(others)
    assert len(line_points(panel, "D")) == 6  # one median per launch
    assert panel.get_xlabel() == "step time [ms]"
    assert [tick.get_text() for tick in panel.get_yticklabels()] == ["eigen, threads 1", "pytorch, threads 1"]
    assert panel.get_title(loc="left") == "title"
    assert png(figure).startswith(b"\x89PNG")


def test_steps_that_are_all_equal_still_have_an_axis() -> None:
    same = LaunchSteps(np.full(5, 0.01), np.arange(5) * 0.01, np.ones(5, np.bool_), 0.01)
    assert png(step_times_figure([CaseSteps("same", [same])])).startswith(b"\x89PNG")


def test_each_launch_has_its_step_time() -> None:
    panel = step_times_figure(CASES).axes[0]
    expected = sorted(1e3 * one.step_seconds for case in CASES for one in case.launches)
    np.testing.assert_allclose(line_points(panel, "D"), expected)


def test_far_apart_cases_get_a_logarithmic_axis_with_plain_numbers() -> None:
    cases = [CaseSteps("fast", [launch(0.1)]), CaseSteps("slow", [launch(10.0)])]
    figure = step_times_figure(cases)
    panel = figure.axes[0]
    assert panel.get_xscale() == "log"
    assert panel.get_xlabel() == "step time"
    figure.draw_without_rendering()
    shown = [tick.get_text() for tick in panel.get_xticklabels()]
    assert {"100 µs", "1 ms", "10 ms"} <= set(shown)
    assert len(line_points(panel, "x")) == 10
    assert len(line_points(panel, ">")) == 10
    assert step_times_figure(CASES).axes[0].get_xscale() == "linear"


def test_many_steps_are_thinned_and_the_figure_says_so() -> None:
    many = launch(0.001, steps=3 * MOST_POINTS, warmup=0)
    figure = step_times_figure([CaseSteps("null", [many])])
    drawn = line_points(figure.axes[0], ".")
    assert len(drawn) == MOST_POINTS
    assert drawn[0] == pytest.approx(many.seconds.min() * 1e6)
    assert drawn[-1] == pytest.approx(many.seconds.max() * 1e6)
    series = step_series_figure([CaseSteps("null", [many])])
    assert "40,000 steps near the middle not drawn" in series.axes[0].get_title(loc="left")
    (legend,) = figure.legends
    assert any("40,000 steps near the middle not drawn" in text.get_text() for text in legend.get_texts())


def test_step_series_has_a_panel_per_case() -> None:
    figure = step_series_figure(CASES)
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "eigen, threads 1 (3 launches)",
        "pytorch, threads 1 (3 launches)",
    ]
    assert "[s]" in figure.axes[-1].get_xlabel()
    assert all(panel.get_ylabel() == "step [ms]" for panel in figure.axes)
    assert len({panel.get_ylim() for panel in figure.axes}) == 1, "one scale: panels can be compared by eye"
    assert len({panel.get_xlim() for panel in figure.axes}) == 1
    assert png(figure).startswith(b"\x89PNG")


def thick(panel: Any) -> list[Any]:
    return [line for line in panel.lines if line.get_linewidth() > 1]


def test_learning_against_steps_and_time() -> None:
    figure = learning_figure(LEARNING)
    loss_steps, loss_time, accuracy_steps, accuracy_time = figure.axes
    assert "loss" in loss_steps.get_ylabel()
    assert accuracy_steps.get_ylabel() == "test accuracy [%]"
    assert accuracy_steps.get_xlabel() == "steps"
    assert accuracy_time.get_xlabel().startswith("training time [s]")
    # Equal against steps; against time the slower one is stretched by its step time.
    fast, slow = thick(accuracy_steps)
    np.testing.assert_allclose(fast.get_ydata(), slow.get_ydata())
    np.testing.assert_allclose(fast.get_xdata(), slow.get_xdata())
    fast, slow = thick(accuracy_time)
    np.testing.assert_allclose(slow.get_xdata() / fast.get_xdata(), 19 / 9)
    np.testing.assert_allclose(fast.get_xdata(), np.arange(22, 265, 22) * 0.009)
    assert fast.get_ydata()[-1] == pytest.approx(
        100 * np.mean([run.accuracy[-1] for run in LEARNING[0].runs])
    )
    assert len(thick(loss_time)) == 2
    assert loss_steps.get_ylim() == loss_time.get_ylim()
    assert accuracy_steps.get_xlim() == loss_steps.get_xlim()
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("draw", [loss_figure, accuracy_figure])
def test_single_figures(draw: Any) -> None:
    figure = draw(LEARNING)
    assert [panel.get_xlabel()[:5] for panel in figure.axes] == ["steps", "train"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["eigen", "pytorch"]


def test_a_loss_that_becomes_nan_is_drawn_up_to_there() -> None:
    case = learning("diverges", 0.01)
    case.runs[0].loss[100:] = np.nan
    assert png(learning_figure([case])).startswith(b"\x89PNG")


def test_a_single_short_run() -> None:
    run = LearningRun(1, np.array([0.1]), np.array([2.3]), np.array([1]), np.array([0.5]))
    assert png(learning_figure([CaseLearning("one step", [run])])).startswith(b"\x89PNG")


def test_a_figure_shows_itself_in_a_notebook() -> None:
    figure: Any = step_times_figure(CASES)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_labels_say_what_differs() -> None:
    def row(backend: str, **axes: Any) -> Any:
        return SimpleNamespace(
            case=SimpleNamespace(
                backend=backend, who=backend, axes={"backend": backend, "network": "mlp", **axes}
            )
        )

    rows = [row("eigen", threads=1), row("eigen", threads=2), row("null", threads=None)]
    assert case_labels(rows) == ["eigen, threads 1", "eigen, threads 2", "null"]


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Unavailable, match=r"figures need matplotlib: pip install"):
        step_times_figure(CASES)


def test_units() -> None:
    assert [time_unit(seconds)[1] for seconds in (2.0, 0.5, 2e-3, 2e-5, 3e-8)] == [
        "s",
        "ms",
        "ms",
        "µs",
        "ns",
    ]
    assert wide_range([1.0, 9.0])
    assert not wide_range([1.0, 7.0])
    assert not wide_range([0.0, 100.0])
    assert not wide_range([])


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def run(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return run


def test_from_results(run: Callable[..., Results]) -> None:
    results = run("backend=fast,slow", "launches=3", "epochs=12", "learning_seeds=2")
    cases = speed_cases(results)
    assert [case.label for case in cases] == ["fast", "slow"]
    assert [len(case.launches) for case in cases] == [3, 3]
    # fakes.py: 1 + 3 steps before the steady ones, then two segments of which the first step is set apart.
    assert cases[0].launches[0].steady.tolist() == [False] * 5 + [True] * 20 + [False] + [True] * 20
    assert cases[0].launches[0].step_seconds == pytest.approx(42 / 41 * 100e-6)
    runs = learning_cases(results)[1].runs
    assert [run.seed for run in runs] == [1, 2]
    np.testing.assert_allclose(runs[0].seconds_at(np.array([0, 1, 10])), [0, 206.4e-6, 2064e-6], rtol=0.01)
    assert runs[0].accuracy.tolist() == [0.971]
    for draw in (results.plot.step_times, results.plot.step_series, results.plot.learning, results.plot.loss):
        assert png(draw()).startswith(b"\x89PNG")
    assert len(results.sel(backend="slow").plot.accuracy().axes) == 2


@pytest.mark.parametrize("kind", ["detailed", "judged"])
def test_steps_that_stand_apart_are_not_drawn(
    run: Callable[..., Results], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write = fakes.write_launch
    extra = [[10**9] * 7]
    monkeypatch.setattr(fakes, "write_launch", lambda plan, record, durations, kinds: write(
        plan, record, durations + extra * bool(durations), kinds + [kind] * bool(durations)
    ))  # fmt: skip
    results = run("backend=fast", "launches=1", "epochs=12", "learning_seeds=1")
    (case,) = speed_cases(results)
    assert len(case.launches[0].seconds) == 46
    assert case.launches[0].seconds.max() < 1.0
    (learned,) = learning_cases(results)
    assert len(learned.runs[0].loss) == 10


def test_launches_that_failed_are_not_drawn(run: Callable[..., Results]) -> None:
    results = run("backend=fast,crashes", "launches=2")
    assert [case.label for case in speed_cases(results)] == ["fast"]
    with pytest.raises(InputError, match=r"No case of these results has a steady step.*results\.table"):
        results.sel(backend="crashes").plot.step_times()


def test_no_learning_launches(run: Callable[..., Results]) -> None:
    with pytest.raises(InputError, match=r"no learning launches to draw.*epochs = 12"):
        run("backend=fast", "launches=2").plot.learning()


def drawn(panel: Any, kind: str) -> list[tuple[float, float]]:
    """Ends of the lines of this kind, in the panel's unit."""
    return [tuple(line.get_xdata()) for line in panel.lines if line.get_label() == f"_{kind}"]


@pytest.fixture
def results(run: Callable[..., Results]) -> Results:
    return run("backend=fast,slow", "launches=3", "epochs=12", "learning_seeds=2")


def test_the_line_is_the_number_of_the_table(results: Results) -> None:
    (panel,) = results.plot.step_times().axes
    rows = [row for row in results.rows if row.step_time_ns is not None]
    assert rows
    scale = {"ms": 1e-6, "µs": 1e-3}[panel.get_xlabel().split("[")[-1].rstrip("]")]
    for row, line, interval, tick in zip(
        rows, drawn(panel, "estimate"), drawn(panel, "interval"), panel.get_yticklabels(), strict=True
    ):
        step = row.step_time_ns
        assert line == pytest.approx([step.estimate * scale] * 2)
        assert interval == pytest.approx([step.low * scale, step.high * scale])
        assert f"{duration(step.estimate)} {plus_minus(step)}" in tick.get_text()
        low, high = panel.get_xlim()
        assert low <= interval[0] <= interval[1] <= high


def test_a_case_without_a_number_has_no_line() -> None:
    (panel,) = step_times_figure(CASES).axes
    assert drawn(panel, "estimate") == drawn(panel, "interval") == []


def test_an_interval_that_says_nothing_does_not_stretch_the_axis() -> None:
    wide = dataclasses.replace(CASES[0], step_time=Estimate(9.2e6, 1e3, 1e12, 2, "t"))
    (panel,) = step_times_figure([wide]).axes
    assert panel.get_xlim()[1] < 100
    assert drawn(panel, "estimate") == [pytest.approx((9.2, 9.2))]


def test_a_title_is_the_question_that_the_figure_answers(results: Results) -> None:
    assert all(question.endswith("?") for question in QUESTIONS.values())
    plots = results.plot
    titles = {
        name: figure_words(getattr(plots, name)()) for name in ("step_times", "step_series", "learning")
    }
    for name, title in titles.items():
        assert title.startswith(f"{QUESTIONS[name]}\n")


def figure_words(figure: Any) -> str:
    suptitle = figure.get_suptitle()
    return suptitle or figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_nothing_is_drawn_in_the_color_of_the_ground(style: str, results: Results) -> None:
    from matplotlib import colors
    from matplotlib import style as styles

    def distance(one: Any, other: Any) -> float:
        return float(np.abs(np.array(colors.to_rgb(one)) - np.array(colors.to_rgb(other))).sum())

    with styles.context(style):
        figures = [results.plot.step_times(), results.plot.step_series(), results.plot.learning()]
        for figure in figures:
            for panel in figure.axes:
                ground = panel.get_facecolor()
                assert all(distance(line.get_color(), ground) > 0.5 for line in panel.lines)
                assert all(distance(text.get_color(), ground) > 0.5 for text in panel.get_yticklabels())


# Linear RGB as dichromats see it (Vienot, Brettel and Mollon, 1999).
SEEN_BY = {
    "everyone": np.eye(3),
    "protanopes": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "deuteranopes": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
}


def seen(color: str, by: str) -> Any:
    from matplotlib.colors import to_rgb

    plain = np.array(to_rgb(color))
    linear = np.where(plain <= 0.04045, plain / 12.92, ((plain + 0.055) / 1.055) ** 2.4)
    turned = np.clip(SEEN_BY[by] @ linear, 0, 1)
    return np.where(turned <= 0.0031308, 12.92 * turned, 1.055 * turned ** (1 / 2.4) - 0.055)


def nearest(palette: Sequence[str], by: str) -> float:
    pairs = itertools.combinations(palette, 2)
    return min(float(np.linalg.norm(seen(one, by) - seen(other, by))) for one, other in pairs)


@pytest.mark.parametrize("by", SEEN_BY)
def test_colors_are_told_apart_by_every_kind_of_color_vision(by: str) -> None:
    assert nearest(COLORS, by) > 0.14


def test_red_and_green_are_not_told_apart_by_everyone() -> None:
    assert min(nearest(("#8c6d00", "#4f8000"), by) for by in SEEN_BY) < 0.14


def test_figures_take_what_the_table_has_found(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Analysing thousands of steps is what a page of forty rows takes its time for."""
    again = Results(results.path)
    analysed = []

    def counting(*words: Any) -> Any:
        analysed.append(words)
        return step_times_of(*words)

    for module in [module for name, module in sys.modules.items() if name.startswith("timetrial.")]:
        if hasattr(module, "step_times_of"):
            monkeypatch.setattr(module, "step_times_of", counting)
    assert again.rows
    once = len(analysed)
    assert once > 0
    again.plot.step_times()
    again.plot.step_series()
    assert len(analysed) == once
