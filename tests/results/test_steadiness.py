"""What results say about the steps of a case: steady state, percentiles, spread; in JSON, pandas, words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest
from fakes import FakeEngine
from rich.console import Console

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.report.detail import CaseDetail
from timetrial.report.rendering import to_text
from timetrial.results.results import Results

COUNT = 1200  # of steps that take 5 ms: enough for the 99th percentile


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def measure(*words: str) -> Results:
        experiment = load_words(["network=mlp", "threads=1", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measure


def detail(results: Results) -> str:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(CaseDetail(results.rows[0]))
    return capture.get()


def steady_steps(trend: Any = 1.0, count: int = COUNT) -> Callable[[float], list[int]]:
    """Of 50 times what fakes.py says, with 1 % of scatter; another sample for each launch."""
    random = np.random.default_rng(1)

    def plain(step_ns: float) -> list[int]:
        durations = 50 * step_ns * (1 + 0.01 * random.standard_normal(count)) * trend
        return [int(one) for one in durations]

    return plain


def test_flat_launches(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps()
    results = measure("backend=fast", "launches=6")
    (case,) = results.to_json()["cases"]
    json.dumps(case, allow_nan=False)
    assert case["steady"] in ("flat", "warm-up")
    steps = case["steps"]
    assert list(steps) == [
        "n", "n_effective", "mean_ns", "p5_ns", "p25_ns", "p75_ns", "p95_ns", "p99_ns", "spread_within",
        "spread_within_robust", "outliers_mild", "outliers_severe", "spread_between", "levels_apart",
    ]  # fmt: skip
    assert 0.9 * 6 * COUNT <= steps["n"] <= 6 * COUNT
    assert 0.5 * steps["n"] <= steps["n_effective"] <= steps["n"]
    estimates = [steps[key]["estimate"] for key in ("p5_ns", "p25_ns", "p75_ns", "p95_ns", "p99_ns")]
    assert estimates == sorted(estimates)
    assert steps["p25_ns"]["estimate"] < case["step_time_ns"]["estimate"] < steps["p75_ns"]["estimate"]
    # Half of normal values lie within 0.674 standard deviations.
    half = (steps["p75_ns"]["estimate"] - steps["p25_ns"]["estimate"]) / case["step_time_ns"]["estimate"] / 2
    assert half == pytest.approx(0.00674, rel=0.15)
    assert steps["mean_ns"]["low"] <= steps["mean_ns"]["estimate"] <= steps["mean_ns"]["high"]
    assert steps["spread_within"] == pytest.approx(0.01, rel=0.05)
    assert steps["spread_within_robust"] == pytest.approx(0.01, rel=0.1)
    # Of normal values 0.7 % lie beyond the inner fences and two in a million beyond the outer.
    assert 0.002 < steps["outliers_mild"] / steps["n"] < 0.015
    assert steps["outliers_severe"] == 0
    # fakes.py makes each launch 1 % longer than the one before.
    assert steps["spread_between"] == pytest.approx(np.std(np.log(1 + 0.01 * np.arange(6)), ddof=1), rel=0.1)
    assert steps["levels_apart"] is None
    assert not case["warnings"]
    assert "steady" not in to_text(results, width=200).replace("steady_", "")


def test_outliers_are_counted_and_kept(measure: Callable[..., Results], fake: FakeEngine) -> None:
    stalls = np.where(np.arange(COUNT) % 97 == 50, 3.0, 1.0)
    fake.plain = steady_steps(stalls)
    results = measure("backend=fast", "launches=2")
    (case,) = results.to_json()["cases"]
    frame = results.to_pandas("steps")
    counting = frame[frame["counts"]]
    slow = counting[counting["duration_ns"] > 2 * counting["duration_ns"].median()]
    assert case["steps"]["outliers_severe"] == len(slow) > 10
    assert case["steps"]["spread_within"] > 0.1
    assert case["steps"]["spread_within_robust"] == pytest.approx(0.01, rel=0.15)
    assert f"{len(slow)} severe steps, kept" in detail(results)


def test_a_short_launch_has_no_far_percentiles(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps(count=150)
    (case,) = measure("backend=fast", "launches=2").to_json()["cases"]
    nothing = {"estimate": None, "low": None, "high": None}
    assert case["steps"]["p5_ns"] == case["steps"]["p95_ns"] == case["steps"]["p99_ns"] == nothing
    assert case["steps"]["p25_ns"]["estimate"] is not None
    assert case["steady"] is not None


def test_the_cold_part_stands_apart(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps(1 + 3 * np.exp(-np.arange(COUNT) / 30))
    results = measure("backend=fast", "launches=6")
    (case,) = results.to_json()["cases"]
    assert case["steady"] == "warm-up"
    assert case["first_step_s"] == pytest.approx(1e-3, rel=0.1)
    # The first 30 steps take about thrice as long; what is left of that after 150 is under 1 %.
    assert 0.5 < case["to_steady_s"] < 3
    assert case["step_time_ns"]["estimate"] == pytest.approx(50 * 102_500, rel=0.01)
    frame = results.to_pandas("steps")
    counting = frame[frame["counts"]]
    assert counting["step"].min() > 60
    assert not frame[frame["step"] == 1]["counts"].any()


def test_no_steady_state_is_said(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps(np.linspace(1, 1.5, COUNT))
    results = measure("backend=fast", "launches=6")
    (case,) = results.to_json()["cases"]
    assert case["steady"] in ("drifting", "no steady state")
    assert case["to_steady_s"] is None
    assert case["warnings"][0].startswith("no steady state in half or more of the launches")
    assert "! fast 1: no steady state" in to_text(results, width=200)
    assert "not steady" in (text := detail(results))
    assert "still changing after a third of the launch" in text or "a drift of" in text


def test_launches_that_contradict_each_other_are_inconsistent(
    measure: Callable[..., Results], fake: FakeEngine
) -> None:
    flat, drift = steady_steps(), steady_steps(np.linspace(1, 1.5, COUNT))
    drifts = iter([False, False, True, False, False])
    fake.plain = lambda step_ns: (drift if next(drifts) else flat)(step_ns)
    (case,) = measure("backend=fast", "launches=5").to_json()["cases"]
    assert case["steady"] == "inconsistent"
    assert not case["warnings"]  # most of them are steady


def test_two_groups_of_launches_are_said(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps()
    fake.factor = lambda plan: (1.2 if plan.block % 3 == 0 else 1.0) / (1 + 0.01 * plan.block)
    results = measure("backend=fast", "launches=12")
    (case,) = results.to_json()["cases"]
    assert case["steps"]["levels_apart"] == pytest.approx(0.2, abs=0.01)
    assert "its launches form two groups, 20 % apart" in case["warnings"][0]
    assert "two groups, 20 % apart" in to_text(results, width=200)


def test_pandas_and_show_have_it(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.plain = steady_steps()
    results = measure("backend=fast", "launches=6")
    (line,) = results.to_pandas("cases").to_dict("records")
    assert line["steady"] in ("flat", "warm-up")
    assert line["p99_ns_low"] <= line["p99_ns"] <= line["p99_ns_high"]
    assert line["steps"] > line["steps_effective"] > 0
    launches = results.to_pandas("launches")
    speed = launches[launches["purpose"] == "speed"]
    assert (speed["median_step_ns_low"] < speed["median_step_ns"]).all()
    assert (speed["median_step_ns"] < speed["median_step_ns_high"]).all()
    assert set(speed["stop_reason"]) == {"converged"}
    assert set(speed["steady"]) <= {"flat", "warm-up", "slowdown"}
    text = detail(results)
    for words in ("stopped by converged", "worth", "p99 ", "of launches 1.", "±0.", "steady state"):
        assert words in text


def test_stalls_count_and_are_said(measure: Callable[..., Results], fake: FakeEngine) -> None:
    """Every seventeenth step stalls for ten: the step time and samples/s count it, and a warning names it."""
    fake.plain = lambda step: [10 * step if number % 17 == 16 else step for number in range(170)]
    (row,) = measure("backend=fast", "launches=2").rows
    assert row.mean_over_median == pytest.approx(1 + 9 / 17, rel=0.02)
    assert any("its step time is 5" in text and "above its median step" in text for text in row.warnings)
    assert row.step_time_ns is not None
    assert row.median_step_ns is not None
    assert row.samples_per_s is not None
    assert row.step_time_ns.estimate > 1.5 * row.median_step_ns.estimate
    assert row.samples_per_s.estimate == pytest.approx(64e9 / row.step_time_ns.estimate)
    fake.plain = lambda step: [step] * 170
    (row,) = measure("backend=fast", "launches=2").rows
    assert not any("median step" in text for text in row.warnings)
