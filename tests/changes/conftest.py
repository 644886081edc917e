from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.results.results import Results

Run = Callable[..., Results]


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """An experiment with scripted contenders; what was changed in `fake` before holds for it."""
    # What would settle a movement is checked against this machine: here, against the scripted one.
    monkeypatch.setattr("timetrial.changes.settling.real_engine", fake.engine)
    monkeypatch.setattr(
        "timetrial.changes.settling.load_words",
        lambda words: load_words(words, load_network=fakes.network),
    )

    def measured(*words: str, network: str = "mlp") -> Results:
        experiment = load_words([f"network={network}", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measured
