"""A side from any of its forms, and its name."""

from __future__ import annotations

from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine

import timetrial as tt
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.races.side import Side, experiment_of, side_of
from timetrial.results.names import side_names
from timetrial.results.results import Results


def test_words_and_mappings() -> None:
    assert side_of("eigen") == Side({"backend": "eigen"})
    assert side_of("package.module:make_step") == Side({"callable": "package.module:make_step"})
    assert side_of({"backend": "eigen", "threads": 2}).name == "eigen threads=2"
    side = Side({"backend": "eigen", "threads": 1})
    assert side.replace(threads=2).keys == {"backend": "eigen", "threads": 2}
    assert side.keys["threads"] == 1
    assert side_of(side) is side


@pytest.fixture
def results(results_folder: Path, fake: FakeEngine) -> Results:
    words = ["network=mlp", "backend=fast,slow", "threads=1", "batch_size=32", "optimizer.momentum=0.5"]
    experiment = load_words([*words, "launches=2"], load_network=fakes.network)
    return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())


def test_a_row_of_results_is_the_same_case_again(results: Results) -> None:
    sides = [side_of(results.sel(backend=name)) for name in ("slow", "fast")]
    cases = [planned.case for planned in experiment_of(sides, {}, seed=1).cases]
    assert [case.content_id for case in cases] == [
        results.sel(backend=n).rows[0].case.id for n in ("slow", "fast")
    ]


def test_results_of_two_rows_are_no_side(results: Results) -> None:
    with pytest.raises(
        InputError, match=r"A side is one case; these results have 2: narrow them with sel\(\)"
    ):
        side_of(results)


def test_a_side_with_two_values_is_no_side() -> None:
    with pytest.raises(InputError, match="threads has 2 values; a side is one case"):
        experiment_of(
            [side_of({"backend": "eigen", "threads": [1, 2]}), side_of("onednn")], {"network": "mlp"}, 1
        )


def test_common_keys_hold_for_all_sides() -> None:
    experiment = experiment_of(
        [side_of("eigen"), side_of("onednn")], {"network": "mlp", "threads": 1}, seed=4
    )
    assert [planned.case.settings for planned in experiment.cases] == [{"threads": "1"}] * 2
    assert experiment.spec.seed == 4


def test_what_belongs_to_launches_is_common_to_the_sides() -> None:
    sides = [
        Side({"backend": name, "environment.DATA": "/data", "start_timeout_s": 600})
        for name in ("eigen", "onednn")
    ]
    spec = experiment_of(sides, {"network": "mlp", "progress_timeout_s": 90}, seed=1).spec
    assert spec.environment == {"DATA": "/data"}
    assert (spec.measure.start_timeout_s, spec.measure.progress_timeout_s) == (600, 90)
    with pytest.raises(InputError, match=r"differ in start_timeout_s \(600, 60\): it holds for every"):
        experiment_of([sides[0], sides[1].replace(start_timeout_s=60)], {"network": "mlp"}, 1)


def test_variables_in_which_sides_differ_are_settings_of_each() -> None:
    sides = [Side({"backend": "eigen", "environment.DATA": "/data"}), side_of("onednn")]
    given = {"network": "mlp", "environment.MODE": "fast"}
    experiment = experiment_of(sides, given, seed=1)
    assert experiment.spec.environment == {"MODE": "fast"}
    assert [one.case.settings for one in experiment.cases] == [{"environment.DATA": "/data"}, {}]
    again = experiment_of([Side(keys) for keys in map(dict, experiment.spec.contender)], given, seed=1)
    assert [one.case.id for one in again.cases] == [one.case.id for one in experiment.cases]
    experiment = experiment_of(sides, {**given, "environment.DATA": "/other"}, seed=1)
    assert [one.case.settings for one in experiment.cases] == [
        {"environment.DATA": path} for path in ("/data", "/other")
    ]
    experiment = load_words(["network=mlp", "backend=eigen", "environment.DATA=/data,/other"])
    assert list(side_names([one.case for one in experiment.cases]).values()) == [
        "eigen environment.DATA=/data", "eigen environment.DATA=/other",
    ]  # fmt: skip
    with pytest.raises(InputError, match="HOME lies inside the launch's folder"):
        load_words(["network=mlp", "backend=eigen", "environment.HOME=/a,/b"])


def test_what_tt_settings_holds_is_the_sides_unless_they_say_otherwise() -> None:
    with tt.settings(threads=1), tt.settings(flush_to_zero=True):
        experiment = experiment_of([side_of("eigen"), side_of("onednn")], {"network": "mlp"}, seed=1)
        own = experiment_of([Side({"backend": "eigen", "threads": 2}), side_of("eigen")], {}, seed=1)
        alone = tt.Experiment.load(network="mlp", backend="eigen", flush_to_zero="off")
    assert [one.case.settings for one in experiment.cases] == [{"threads": "1", "flush_to_zero": "on"}] * 2
    assert experiment.remarks == ("threads=1 flush_to_zero=on, as tt.settings holds",)
    assert [one.case.settings["threads"] for one in own.cases] == ["2", "1"]
    assert alone.cases[0].case.settings == {"flush_to_zero": "off", "threads": "1"}
    behind = experiment_of([side_of("eigen"), side_of("onednn")], {"network": "mlp"}, seed=1)
    assert behind.remarks == ()
    assert behind.cases[0].case.settings == {}


def test_a_row_keeps_where_its_data_lies_and_its_limits(fake: FakeEngine, results_folder: Path) -> None:
    words = ["network=mlp", "backend=fast", "threads=1", "launches=2", "dataset_folder=/data"]
    experiment = load_words(
        [*words, "environment.DATA=here", "start_timeout_s=600"], load_network=fakes.network
    )
    found = run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    keys = side_of(found).keys
    assert keys["dataset_folder"] == "/data"
    assert keys["environment.DATA"] == "here"
    assert keys["start_timeout_s"] == 600


def test_names_have_what_tells_the_sides_apart(results: Results) -> None:
    assert list(side_names([row.case for row in results.rows]).values()) == ["fast", "slow"]
    experiment = load_words(["network=mlp", "backend=fast", "threads=1,2"], load_network=fakes.network)
    found = run_experiment(experiment, results.path.parent, quiet=True, engine=FakeEngine().engine())
    assert list(side_names([row.case for row in found.rows]).values()) == ["fast threads=1", "fast threads=2"]
