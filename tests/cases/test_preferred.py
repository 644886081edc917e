"""The data set that one would rather have, and what is taken where it is not ready."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from fakes import FakeEngine

from timetrial.errors import InputError, nearest
from timetrial.experiment import experiment as module
from timetrial.experiment.experiment import Experiment, load, load_words
from timetrial.experiment.runner import run_experiment

KNOWN = ("mnist", "digits28", "synthetic")
TEXT = """
network = "lenet5"
dataset = "mnist"
dataset_else = "digits28"
"""


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Callable[[Collection[str]], None]:
    def set_ready(names: Collection[str]) -> None:
        def is_ready(name: str) -> bool:
            if name not in KNOWN:
                raise InputError(f"There is no dataset '{name}'.{nearest(name, KNOWN)}")
            return name in names

        monkeypatch.setattr(module, "_is_ready", is_ready)

    return set_ready


def experiment(tmp_path: Path, text: str = TEXT, *words: str) -> Experiment:
    file = tmp_path / "look.toml"
    file.write_text(f"[workload]{text}\n[[contender]]\nbackend = ['null', 'eigen']\n")
    return load_words([str(file), *words])


def datasets(one: Experiment) -> set[str]:
    return {planned.case.workload.dataset for planned in one.cases}


def test_the_first_that_is_ready(tmp_path: Path, ready: Callable[[Collection[str]], None]) -> None:
    ready(["mnist", "digits28"])
    found = experiment(tmp_path)
    assert datasets(found) == {"mnist"}
    assert found.remarks == ()
    ready(["digits28"])
    found = experiment(tmp_path)
    assert datasets(found) == {"digits28"}
    assert found.remarks == ("mnist is not ready here: digits28 in its place",)
    assert "dataset_else" not in found.spec.workload  # what is recorded, and resumed, names one
    assert datasets(Experiment.from_dict(found.spec.model_dump(exclude_none=True))) == {"digits28"}


def test_who_names_a_data_set_means_it(tmp_path: Path, ready: Callable[[Collection[str]], None]) -> None:
    ready(["digits28", "synthetic"])
    assert datasets(experiment(tmp_path, TEXT, "dataset=mnist")) == {"mnist"}
    assert datasets(experiment(tmp_path, TEXT, "dataset=synthetic")) == {"synthetic"}
    assert datasets(experiment(tmp_path, TEXT, "dataset=mnist,digits28")) == {"mnist", "digits28"}
    assert datasets(experiment(tmp_path, TEXT, "dataset_else=synthetic")) == {"synthetic"}
    assert datasets(experiment(tmp_path, TEXT, "dataset=mnist", "dataset_else=synthetic")) == {"synthetic"}
    assert datasets(experiment(tmp_path, TEXT, "dataset_folder=~/mnist")) == {"mnist"}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ('dataset_else = "digits28"', (), "dataset_else is 'digits28' and dataset None; expected two names"),
        (TEXT, ("dataset_else=digits28,synthetic",), "expected one value for all, in .workload."),
        (TEXT, ("dataset_else=digits",), "There is no dataset 'digits'"),
        (TEXT.replace("mnist", "mnits"), (), "There is no dataset 'mnits'"),
    ],
)
def test_what_cannot_be(
    tmp_path: Path,
    ready: Callable[[Collection[str]], None],
    text: str,
    words: tuple[str, ...],
    said: str,
) -> None:
    ready(["mnist", "digits28", "synthetic"])
    with pytest.raises(InputError, match=said):
        experiment(tmp_path, f"\n{text}", *words)


def test_the_table_says_which(
    tmp_path: Path, fake: FakeEngine, results_folder: Path, ready: Callable[[Collection[str]], None]
) -> None:
    ready(["digits28"])
    file = tmp_path / "look.toml"
    file.write_text(f"[workload]{TEXT}\n[[contender]]\nbackend = 'fast'\n")
    shown = repr(run_experiment(load(str(file), {}), results_folder, engine=fake.engine(), quiet=True))
    assert " · digits28 · " in shown
    assert "mnist is not ready here: digits28 in its place" in shown


def test_first_look_is_on_mnist_where_it_is(ready: Callable[[Collection[str]], None]) -> None:
    ready(["mnist", "digits28"])
    assert datasets(load("first-look", {})) == {"mnist"}
    ready(["digits28"])
    assert datasets(load("first-look", {})) == {"digits28"}
