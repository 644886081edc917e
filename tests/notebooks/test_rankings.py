"""What the notebooks that hold one ranking against another say of scripted results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from test_notebooks import conclusion_of

import timetrial
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment


@pytest.fixture(autouse=True)
def shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="machine: no matplotlib")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))


def run(folder: Path, factor: Any, *words: str) -> Path:
    engine = FakeEngine()
    engine.factor = factor
    experiment = load_words(["threads=1", "launches=5", *words], load_network=fakes.network)
    return run_experiment(experiment, folder, quiet=True, engine=engine.engine()).path


@pytest.mark.parametrize(
    ("slow_on_lenet5", "said"),
    [
        (1.0, "Of 3 pairs that are apart on both networks, 0 change places: the ranking holds where it can"),
        (0.25, "Of 3 pairs that are apart on both networks, 2 change places: the ranking does not hold"),
    ],
)
def test_networks(
    slow_on_lenet5: float, said: str, results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def factor(plan: Any) -> float:
        work = plan.case.workload.network
        return slow_on_lenet5 if (plan.case.backend, work) == ("slow", "lenet5") else 1.0

    path = run(results_folder, factor, "backend=fast,slow,other,absent", "network=mlp,lenet5")
    text = conclusion_of("networks", "TIMETRIAL_NETWORKS", path, monkeypatch)
    assert said in text
    assert f"of the two rankings of 3 stacks is {1.0 if slow_on_lenet5 == 1 else -0.33:.2f}" in text
    assert "**absent** on lenet5 is unavailable: absent needs the module absent" in text


def test_networks_that_nothing_tells_apart(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run(results_folder, lambda plan: 1.0, "backend=fast,fast", "network=mlp,lenet5")
    assert "0 change places: undecided." in conclusion_of("networks", "TIMETRIAL_NETWORKS", path, monkeypatch)


def test_sequences(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def factor(plan: Any) -> float:
        return 0.25 if plan.case.settings.get("lengths") == "packed" and plan.case.backend == "slow" else 1.0

    monkeypatch.setattr(FakeEngine, "validate_settings", lambda *_, **__: None)
    monkeypatch.setattr("timetrial.experiment.validate.lengths_problem", lambda *_: None)
    images = run(results_folder, factor, "backend=fast,slow", "network=lenet5")
    monkeypatch.setenv("TIMETRIAL_NETWORKS", str(images))
    monkeypatch.setattr(timetrial, "run", None)  # nothing is measured here
    path = run(results_folder, factor, "backend=fast,slow,absent", "network=mlp", "lengths=padded,packed")
    text = conclusion_of("sequences", "TIMETRIAL_LENGTHS", path, monkeypatch)
    assert "On mlp, slow (packed) has the shortest step" in text
    assert "the longest, slow (padded), takes 4.0 times that" in text
    assert "The way through matters most to slow on mlp: padded takes 4.0" in text
    assert "2 stacks ran the LSTM and LeNet-5" in text
    assert "change places by a tenth and more: slow and fast." in text
    assert "**absent** (packed, mlp) is unavailable: absent needs the module absent" in text
