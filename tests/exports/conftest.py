from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.model import Parity
from timetrial.results.results import Results


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    """An experiment with scripted contenders; `slow` is not proven."""

    def measured(*words: str) -> Results:
        fake.parity["slow"] = Parity(status="unproven", reason="nobody could judge")
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measured


@pytest.fixture
def measured(run: Callable[..., Results]) -> Results:
    """What can be found out: numbers, failures of all kinds, and what was unavailable."""
    return run("backend=fast,slow,absent,crashes,mismatched,wrong", "threads=1", "launches=3", "epochs=12")
