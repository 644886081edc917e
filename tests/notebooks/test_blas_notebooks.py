"""What the notebooks about BLAS libraries say of scripted results: claims hold, are refuted or stay undecided
by their intervals, and every number names its case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from test_notebooks import conclusion_of

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="machine: no matplotlib")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))


def measured(folder: Path, factor: Callable[[Any], float], *words: str) -> Path:
    experiment = load_words(["network=lenet5", "launches=4", *words], load_network=fakes.network)
    return run_experiment(experiment, folder, quiet=True, engine=FakeEngine(factor=factor).engine()).path


def second_thread_costs(plan: Any) -> float:
    return 3.0 if plan.case.settings.get("threads") == "2" and plan.case.backend == "slow" else 1.0


def library_decides(plan: Any) -> float:
    return 3.0 if plan.case.settings["blas.library"] == "other" else 1.0


def alike(_: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("factor", "words", "said"),
    [
        (
            alike,
            ["backend=fast,slow,absent", "threads=1,2", "batch_size=16,64"],
            [
                "P0-4, the library that multiplies shortens training without changing accuracy**: holds: one "
                "thread, ",
                "ms (slow, 1 threads over images, batch 64: case ",
                "P3-7, time falls with threads up to the number of cores**: holds: of 4 combinations",
                "help in 4 and to hurt in 0",
                "absent, 1 threads over images, batch 16: unavailable, absent needs the module absent",
            ],
        ),
        (second_thread_costs, ["backend=fast,slow", "threads=1,2"], ["refuted as a rule: of 2", "hurt in 1"]),
        (alike, ["backend=fast", "threads=1"], ["fewer than two libraries", "only one number of threads"]),
    ],
)
def test_blas(
    factor: Callable[[Any], float],
    words: list[str],
    said: list[str],
    results_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = conclusion_of("blas", "TIMETRIAL_BLAS", measured(results_folder, factor, *words), monkeypatch)
    for one in [*said, "Records: `"]:
        assert one in text


@pytest.mark.parametrize(
    ("factor", "words", "said"),
    [
        (library_decides, ["blas.library=one,other"], "holds: slowest over fastest library fast 3.0 times"),
        (alike, ["blas.library=one,other"], "refuted: slowest over fastest library fast 1.0 times"),
        (alike, [], "undecided: fewer than two frameworks ran over several libraries"),
    ],
)
def test_blas_in_frameworks(
    factor: Callable[[Any], float],
    words: list[str],
    said: str,
    results_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = measured(results_folder, factor, "backend=fast,slow", "threads=1", *words)
    text = conclusion_of("blas-in-frameworks", "TIMETRIAL_BLAS_IN_FRAMEWORKS", folder, monkeypatch)
    assert said in text
    assert "undecided: PyTorch and TensorFlow were not both measured" in text
    assert "Records: `" in text


def test_a_gap_that_threads_explain(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the two frameworks stand in the notebook; here others ride under them."""
    monkeypatch.setitem(fakes.STEP_NS, "pytorch", 100_000)
    monkeypatch.setitem(fakes.STEP_NS, "tensorflow", 100_000)
    monkeypatch.setattr(fakes, "BACKENDS", (*fakes.BACKENDS, "pytorch", "tensorflow"))

    def likes_two(plan: Any) -> float:
        return 2.0 if plan.case.backend == "pytorch" and "threads" not in plan.case.settings else 1.0

    file = results_folder / "two.toml"
    results_folder.mkdir(parents=True, exist_ok=True)
    file.write_text(
        'name = "two"\n[workload]\nnetwork = "lenet5"\n'
        '[[contender]]\nbackend = ["pytorch", "tensorflow"]\nthreads = 1\n'
        '[[contender]]\nbackend = ["pytorch", "tensorflow"]\n[measure]\nlaunches = 4\n'
    )
    experiment = load_words([str(file)], load_network=fakes.network)
    engine = FakeEngine(factor=likes_two).engine()
    results = run_experiment(experiment, results_folder, quiet=True, engine=engine)
    text = conclusion_of("blas-in-frameworks", "TIMETRIAL_BLAS_IN_FRAMEWORKS", results.path, monkeypatch)
    assert "P4-6" in text
    assert "holds: PyTorch's step over TensorFlow's: 2.0" in text
    assert "As they like, TensorFlow's step is shown to be the shorter one" in text
