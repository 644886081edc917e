"""What was measured before, the last one first."""

from __future__ import annotations

import os
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.races import Race, run_race
from timetrial.races.history import history
from timetrial.records import store
from timetrial.results.results import Results


@pytest.fixture
def measured(results_folder: Path, fake: FakeEngine) -> tuple[Results, Race]:
    """A run, then a race."""
    engine = fake.engine()
    run = load_words(["network=mlp", "backend=fast,slow", "launches=2"], load_network=fakes.network)
    race = load_words(["network=mlp", "backend=fast,slow"], load_network=fakes.network)
    found = run_experiment(run, results_folder, quiet=True, engine=engine)
    os.utime(found.path / store.EXPERIMENT_FILE, (1_000_000_000, 1_000_000_000))
    return found, run_race(race, results_folder, quiet=True, engine=engine)


def test_when_what_and_the_verdict(measured: tuple[Results, Race], results_folder: Path) -> None:
    run, race = measured
    entries, count = history(results_folder)
    assert count == 2
    assert [one.id for one in entries] == [race.folder.name, run.path.name]
    assert entries[0].what == "race slow against fast"
    assert entries[0].found.startswith("slow: worse, +")
    assert entries[1].what == "run network=mlp backend=fast,slow launches=2 seed=1"
    assert entries[1].found == "2 cases"
    assert all(one.when.startswith("20") for one in entries)
    assert [one.id for one in history(results_folder, 1)[0]] == [race.folder.name]


def test_what_cannot_be_read_and_what_is_unfinished(
    measured: tuple[Results, Race], results_folder: Path
) -> None:
    run, race = measured
    (race.folder / "race.json").write_text("{")
    (run.path / "unfinished").touch()
    damaged, unfinished = history(results_folder)[0]
    assert damaged.what == "damaged"
    assert "race.json" in damaged.found
    assert unfinished.found == "unfinished"


def test_the_last_one_by_its_name(measured: tuple[Results, Race], results_folder: Path) -> None:
    run, race = measured
    assert store.find("last", results_folder) == race.folder
    os.utime(run.path / store.EXPERIMENT_FILE)
    assert store.find("last", results_folder) == run.path


def test_nothing_was_measured(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        store.find("last", tmp_path / "results")
    with pytest.raises(InputError, match="There is no folder"):
        history(tmp_path / "results")
    assert history(tmp_path) == ([], 0)


def test_objects_are_printed_in_a_few_words(measured: tuple[Results, Race]) -> None:
    run, race = measured
    row = run.rows[0]
    for thing in (row, row.case, row.launches[0], run.experiment, run.launches[0], race.duels[0]):
        assert len(repr(thing)) < 800, repr(thing)
        assert len(str(thing)) < 800
    assert "fast network=mlp" in repr(row)
    assert "103 us" in repr(row)
