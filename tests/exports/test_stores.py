"""MLflow and TensorBoard, read back with the libraries themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEngine
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.errors import InputError, Unavailable
from timetrial.exports.tracks import MOST_POINTS, _curve, _step_times, tracks_of
from timetrial.results.results import Results

WORDS = ("backend=fast,slow,crashes", "threads=1", "launches=3", "epochs=12", "learning_seeds=2")


def test_series_are_short_and_finite() -> None:
    loss = np.array([2.0, np.nan, np.inf, 1.0])
    assert (_curve("loss", loss).steps, _curve("loss", loss).values) == ([0, 3], [2.0, 1.0])
    assert len(_curve("loss", np.ones(25_000)).steps) == 8334
    steady = np.ones(5000, bool)
    steady[:100] = False
    steps = _step_times("t", np.linspace(1e6, 2e6, 5000), steady)
    assert len(steps.steps) == MOST_POINTS
    assert steps.steps[0] == 100
    assert steps.values[0] == pytest.approx(1.02, rel=1e-2)
    assert _step_times("t", np.ones(3), np.zeros(3, bool)).steps == []


def test_what_failed_has_no_numbers(run: Callable[..., Results]) -> None:
    fast, slow, crashed = tracks_of(run(*WORDS))
    assert (fast.ok, slow.proven, crashed.ok) == (True, False, False)
    assert (crashed.numbers, crashed.series) == ({}, [])
    assert crashed.outcome == "crash: the contender crashes"
    assert {one.name for one in fast.series} == {
        "training_loss/seed 1", "training_loss/seed 2", "test_accuracy/seed 1", "test_accuracy/seed 2",
        "step_time_ms/launch 0", "step_time_ms/launch 1", "step_time_ms/launch 2",
    }  # fmt: skip
    assert "ratio" in slow.numbers
    assert "ratio" not in fast.numbers


@pytest.fixture
def events(tmp_path: Path) -> Callable[[Path], dict[str, Any]]:
    """Folder -> the accumulators of its runs, in the order of the cases."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def read(folder: Path) -> dict[str, Any]:
        found = {}
        for one in sorted(folder.iterdir()):
            found[one.name] = accumulator.EventAccumulator(str(one), {"scalars": 0})
            found[one.name].Reload()
        return found

    return read


def test_tensorboard_reads_it(
    run: Callable[..., Results], tmp_path: Path, events: Callable[[Path], dict[str, Any]]
) -> None:
    found = run(*WORDS)
    place = found.export("tensorboard", tmp_path / "logs")
    assert place == tmp_path / "logs" / found.path.name
    fast, slow, crashed = events(Path(place)).values()
    case = found.to_json()["cases"][1]
    assert slow.Scalars("step_time_ns")[0].value == pytest.approx(case["step_time_ns"]["estimate"], rel=1e-6)
    assert slow.Scalars("ratio")[0].value == pytest.approx(case["ratio"]["estimate"], rel=1e-6)
    losses = fast.Scalars("training_loss/seed 1")
    assert [one.step for one in losses] == list(range(10))
    assert losses[0].value == pytest.approx(2.3)
    (accuracy,) = fast.Scalars("test_accuracy/seed 2")
    assert (accuracy.step, accuracy.value) == (9, pytest.approx(0.972))
    assert fast.Scalars("step_time_ms/launch 0")[0].value == pytest.approx(0.1)
    assert crashed.Tags()["scalars"] == []
    from tensorboard.plugins.hparams import plugin_data_pb2

    def told(one: Any, tag: str) -> Any:
        data = one.SummaryMetadata(f"_hparams_/{tag}").plugin_data.content
        return plugin_data_pb2.HParamsPluginData.FromString(data)

    asked = told(slow, "session_start_info").session_start_info.hparams
    assert asked["backend"].string_value == "slow"
    assert asked["threads"].string_value == "1"
    assert asked["proven"].string_value == "False"
    statuses = [told(one, "session_end_info").session_end_info.status for one in (fast, crashed)]
    assert statuses[0] != statuses[1]


def test_tensorboard_of_a_race(
    raced: Callable[..., Any], tmp_path: Path, events: Callable[[Path], dict[str, Any]]
) -> None:
    race = raced("backend=fast,slow")
    _base, slow = events(Path(race.export("tensorboard", tmp_path / "logs"))).values()
    ratios = [one.value for one in slow.Scalars("ratio_by_pair")]
    assert ratios == pytest.approx(np.exp(race.log_ratios(race.duels[0].case)), rel=1e-6)


def test_tensorboard_writes_over_nothing(run: Callable[..., Results], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    found = run("backend=fast", "threads=1", "launches=1")
    logs = tmp_path / "logs"
    place = Path(found.export("tensorboard", logs))
    before = sorted(place.rglob("*"))
    with pytest.raises(InputError, match=r"exists. .* --force"):
        found.export("tensorboard", logs)
    assert sorted(place.rglob("*")) == before
    found.export("tensorboard", logs, force=True)
    assert [one.name for one in logs.iterdir()] == [found.path.name], "nothing else is left"


@pytest.mark.parametrize(("format", "module"), [("tensorboard", "tensorboard"), ("mlflow", "mlflow")])
def test_a_library_that_is_missing_comes_with_its_command(
    run: Callable[..., Results], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, module: str
) -> None:
    found = run("backend=fast", "threads=1", "launches=1")
    for name in [one for one in sys.modules if one.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unavailable, match=rf"pip install 'timetrial\[{format}\]'"):
        found.export(format, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["tensorboard", "mlflow"])
def test_places_that_cannot_be(
    run: Callable[..., Results], tmp_path: Path, results_folder: Path, format: str
) -> None:
    found = run("backend=fast", "threads=1", "launches=1")
    file = tmp_path / "file"
    file.write_text("mine")
    for place, words in ((file, "is a file"), (found.path, "lies in a record"), (None, "give it, -o FOLDER")):
        with pytest.raises(InputError, match=words):
            found.export(format, place)
    words = ["export", "last", "--format", format, "-o", str(file), "--results", str(results_folder)]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert file.read_text() == "mine"


@pytest.mark.full  # MLflow's packages take more than 100 MB: `make test-all` installs them
def test_mlflow_reads_it(
    fake: FakeEngine, run: Callable[..., Results], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    found, store = run(*WORDS), tmp_path / "store"
    found.export("mlflow", store)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = tracking.MlflowClient(tracking_uri=store.as_uri())
    place = client.get_experiment_by_name(found.experiment.name).experiment_id
    runs = {one.data.params["backend"]: one for one in client.search_runs([place])}
    case = found.to_json()["cases"][1]
    slow = runs["slow"]
    assert slow.data.metrics["step_time_ns"] == case["step_time_ns"]["estimate"]
    assert slow.data.metrics["ratio_low"] == case["ratio"]["low"]
    assert slow.data.tags["timetrial.record"] == found.path.name
    assert (slow.info.status, runs["crashes"].info.status) == ("FINISHED", "FAILED")
    assert runs["crashes"].data.metrics == {}
    losses = client.get_metric_history(runs["fast"].info.run_id, "training_loss/seed 1")
    assert [one.step for one in losses] == list(range(10))
    with pytest.raises(InputError, match=r"has record .* already"):
        found.export("mlflow", store)
    found.export("mlflow", store, force=True)
    assert len(client.search_runs([place])) == 3
    run("backend=fast", "threads=1", "launches=1").export("mlflow", store)
    assert len(client.search_runs([place])) == 4
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("mine")
    with pytest.raises(InputError, match="something else than an MLflow store"):
        found.export("mlflow", tmp_path / "other")
