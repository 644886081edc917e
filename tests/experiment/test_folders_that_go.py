"""A results folder that somebody removes or moves in the middle: the run says so before its next launch, and
what still lies somewhere is not lost."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import MeasurementError
from timetrial.experiment import runner
from timetrial.experiment.engine import Engine
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import RunStoppedError, resume_experiment, run_experiment
from timetrial.fitting.fitting import fit_experiment
from timetrial.races import run_race
from timetrial.records import sessions

pytestmark = pytest.mark.attempt

WENT = r"results/.*' was removed or moved while it was measured into: .*--resume NEW_PLACE does the rest"
WORDS = ["network=mlp", "backend=fast,slow", "launches=4", "isolated=true"]
BEFORE = 5  # launches have a record when it happens: two proofs, and others


def _own_folder(results: Path) -> Path:
    [folder] = results.iterdir()
    return folder


def _replace_by_file(results: Path) -> None:
    folder = _own_folder(results)
    shutil.rmtree(folder)
    folder.write_text("")


def _engine(fake: FakeEngine, results: Path, deed: Callable[[Path], object]) -> Engine:
    """Whose contenders are ended by what happens to the folder, as real ones are."""

    def before(plan: Any) -> None:
        if len(fake.log) == BEFORE:
            deed(results)

    fake.before = before
    return fake.engine()


@pytest.mark.parametrize(
    "deed",
    [
        shutil.rmtree,
        lambda results: shutil.rmtree(_own_folder(results)),
        lambda results: _own_folder(results).rename(results / "elsewhere"),
    ],
    ids=["results", "run", "moved"],
)
@pytest.mark.parametrize("words", [["isolated=true"], []], ids=["alone", "together"])
def test_a_run_ends_in_words_before_its_next_launch(
    fake: FakeEngine, results_folder: Path, deed: Callable[[Path], object], words: list[str]
) -> None:
    experiment = load_words([*WORDS[:3], *words], load_network=fakes.network)
    with pytest.raises(MeasurementError, match=WENT) as caught:
        run_experiment(experiment, results_folder, quiet=True, engine=_engine(fake, results_folder, deed))
    assert not isinstance(caught.value, RunStoppedError)  # there is no table left
    assert len(fake.log) <= BEFORE + 1  # who rode beside it
    assert fake.locked == 0


def test_a_file_in_its_place(fake: FakeEngine, results_folder: Path) -> None:
    experiment = load_words(WORDS, load_network=fakes.network)
    with pytest.raises(MeasurementError, match=WENT):
        run_experiment(
            experiment, results_folder, quiet=True, engine=_engine(fake, results_folder, _replace_by_file)
        )


def test_what_was_moved_is_resumed_there(
    fake: FakeEngine, results_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "experiment_of", lambda _: load_words(WORDS, load_network=fakes.network))
    place = tmp_path / "elsewhere"
    engine = _engine(fake, results_folder, lambda results: _own_folder(results).rename(place))
    with pytest.raises(MeasurementError, match=WENT):
        run_experiment(
            load_words(WORDS, load_network=fakes.network), results_folder, quiet=True, engine=engine
        )
    assert sessions.state(place) == "unfinished"
    resumed = resume_experiment(place, quiet=True, engine=fake.engine())
    assert [row.ok for row in resumed.rows] == [4, 4]
    assert sessions.state(place) == "whole"


def test_a_description_that_was_removed_is_put_back(fake: FakeEngine, results_folder: Path) -> None:
    engine = _engine(fake, results_folder, lambda one: (_own_folder(one) / "experiment.json").unlink())
    found = run_experiment(
        load_words(WORDS, load_network=fakes.network), results_folder, quiet=True, engine=engine
    )
    assert [row.ok for row in found.rows] == [4, 4]


def test_proofs_that_were_removed_are_made_again(
    fake: FakeEngine, results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["network=mlp", "backend=fast,slow", "launches=4"]
    monkeypatch.setattr(runner, "experiment_of", lambda _: load_words(words, load_network=fakes.network))
    engine = _engine(fake, results_folder, lambda results: shutil.rmtree(_own_folder(results) / "proof"))
    with pytest.raises(RunStoppedError, match=r"proof.*\(--resume\) proves it once more") as caught:
        run_experiment(
            load_words(words, load_network=fakes.network), results_folder, quiet=True, engine=engine
        )
    assert "does the rest" in repr(caught.value.results)
    resumed = resume_experiment(_own_folder(results_folder), quiet=True, engine=fake.engine())
    assert [row.ok for row in resumed.rows] == [4, 4]


def test_a_race_and_a_search_end_in_words_too(fake: FakeEngine, results_folder: Path) -> None:
    engine = _engine(fake, results_folder, shutil.rmtree)
    experiment = load_words(["network=mlp", "backend=fast,slow"], load_network=fakes.network)
    with pytest.raises(MeasurementError, match=WENT):
        run_race(experiment, results_folder, quiet=True, engine=engine)
    fake.log.clear()
    shutil.rmtree(results_folder)
    with pytest.raises(MeasurementError, match=WENT):
        fit_experiment(experiment, results_folder, quiet=True, engine=engine)
    assert len(fake.log) == BEFORE + 1


def test_a_real_run_whose_folder_goes(results_folder: Path) -> None:
    """By another thread, while a contender runs."""

    def remove() -> None:
        while not list(results_folder.glob("*/launches/*/stdout.txt")) and not over.wait(0.005):
            pass
        shutil.rmtree(results_folder, ignore_errors=True)

    experiment = load_words(["network=mlp", "dataset=synthetic", "backend=null", "threads=1", "launches=40"])
    engine = replace(runner.real_engine(), peak_flops=lambda threads: 1e11)
    over = threading.Event()
    thread = threading.Thread(target=remove)
    thread.start()
    try:
        with pytest.raises(MeasurementError, match=WENT):
            run_experiment(experiment, results_folder, quiet=True, engine=engine)
    finally:
        over.set()
        thread.join()
