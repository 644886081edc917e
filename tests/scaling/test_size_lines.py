"""Lines over batch size, width and depth, of contenders whose memory is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.results.results import Results

MB, KB = 1 << 20, 1 << 10


def sized(source: str) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(fakes.network("mlp")), "name": source})


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def held(plan: Any) -> int:
        """40 MB, twice as much of `slow`, and 100 kB for each sample; of other widths and depths more."""
        fixed = 40 * MB if plan.case.backend == "fast" else 80 * MB
        depth = plan.case.axes.get("depth", 0)
        return int(fixed + 100 * KB * plan.case.workload.batch_size + MB * depth)

    def factor(plan: Any) -> float:
        return float(1 + plan.case.workload.batch_size / 50)

    fake.held, fake.factor = held, factor
    fake.witnesses = {"cpus_used": 2.0}

    def measured(*words: str) -> Results:
        words = ("network=mlp", "threads=1", "launches=2", *words)
        return run_experiment(
            load_words(list(words), load_network=sized), results_folder, quiet=True, engine=fake.engine()
        )

    return measured


def test_memory_and_time_have_a_fixed_part_and_one_for_each_sample(run: Callable[..., Results]) -> None:
    lines = run("backend=fast,slow", "batch_size=50,100,200").lines()
    assert [(one.words, one.quantity) for one in lines.lines] == [
        (who, name) for who in ("fast", "slow") for name in ("memory", "cpu_time", "step_time")
    ]
    memory, cpu_time, step_time, slow, *_ = lines.lines
    assert memory.line.fixed.estimate == pytest.approx(40 * MB)
    assert memory.line.each.estimate == pytest.approx(100 * KB)
    assert slow.line.fixed.estimate == pytest.approx(80 * MB)
    assert cpu_time.line.fixed.estimate == pytest.approx(2 * step_time.line.fixed.estimate, rel=0.1)
    assert step_time.line.each.estimate == pytest.approx(step_time.line.fixed.estimate / 50, rel=0.02)
    predicted = lines.largest(60 * MB)
    assert predicted["fast"].estimate == pytest.approx(200 * 1.024, rel=1e-3)
    assert predicted["slow"].estimate == 0, "it holds more without any sample"
    text = repr(lines)
    assert "fast" in text
    assert "40.0 MB [40.0, 40.0]" in text
    assert re.search(r"(100|100\.0) kB \[", text)
    assert lines.to_json()["lines"][0]["sizes"] == [50, 100, 200]


def test_what_is_no_straight_line_says_so(fake: FakeEngine, run: Callable[..., Results]) -> None:
    fake.held = lambda plan: int(MB * plan.case.workload.batch_size**2 / 100)
    lines = run("backend=fast", "batch_size=10,100,1000").lines()
    assert not lines.lines[0].is_straight
    assert "no straight line: off by" in repr(lines)


def test_depth_is_a_line_too(run: Callable[..., Results]) -> None:
    lines = run("backend=fast", "depth=1,2,4").lines("depth")
    assert lines.lines[0].line.each.estimate == pytest.approx(MB)
    assert "each layer" in repr(lines)


def test_the_figure_has_points_and_lines(run: Callable[..., Results]) -> None:
    results = run("backend=fast,slow", "batch_size=50,100,200")
    figure = results.plot.lines()
    memory, cpu_time = figure.axes
    assert memory.get_ylabel() == "memory [MB]"
    assert cpu_time.get_xlabel() == "batch size"
    points = next(line for line in memory.lines if line.get_label() == "fast")
    assert list(points.get_xdata()) == [50, 100, 200]
    assert points.get_ydata()[0] == pytest.approx(40 + 50 / 10.24)


@pytest.mark.parametrize(
    ("words", "over", "message"),
    [
        (("batch_size=50,100",), "batch_size", "No contender was measured at 3 values of batch_size"),
        (("batch_size=50,100,200",), "depth", "No contender was measured at 3 values of depth"),
        (("batch_size=50,100,200",), "batchsize", "over='batchsize': expected batch_size or width or depth"),
    ],
)
def test_too_little_is_said(
    run: Callable[..., Results], words: tuple[str, ...], over: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run("backend=fast", *words).lines(over)
