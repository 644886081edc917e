from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

import timetrial as tt


@pytest.fixture(autouse=True)
def _scripted(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("timetrial.experiment.runner.real_engine", fake.engine)


DOCUMENT: dict[str, Any] = {
    "name": "from-python",
    "workload": {"network": "mlp"},
    "contender": [{"backend": ["fast", "slow"]}],
    "measure": {"launches": 2, "reference": {"backend": "slow"}},
}


def test_run_takes_keys_alone() -> None:
    results = tt.run(network="mlp", backend=["fast", "slow"], threads=1, launches=2, quiet=True)
    assert [row.case.backend for row in results] == ["fast", "slow"]
    assert results.path.parent == Path("results")


def test_run_takes_a_document_or_an_experiment() -> None:
    for experiment in (DOCUMENT, tt.Experiment.from_dict(DOCUMENT)):
        results = tt.run(experiment, quiet=True)
        assert results.reference == {"backend": "slow"}
        assert tt.load(results.path).to_json() == results.to_json()


def test_an_experiment_says_what_it_is() -> None:
    assert repr(tt.Experiment.from_dict(DOCUMENT)) == "Experiment('from-python': 2 cases of fast, slow)"
    shipped = tt.Experiment.load("first-look", threads=[1], **{"optimizer.learning_rate": 0.01})
    assert {one.case.workload.optimizer["learning_rate"] for one in shipped.cases} == {0.01}


def test_dotted_keys_and_paths(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[workload]\nnetwork = "mlp"\n[[contender]]\nbackend = "fast"\n', encoding="utf-8")
    results = tt.run(file, threads=1, launches=1, quiet=True, results=tmp_path / "elsewhere")
    assert results.experiment.name == "mine"
    assert results.path.parent == tmp_path / "elsewhere"


def test_keys_do_not_change_a_given_document() -> None:
    with pytest.raises(tt.InputError, match="put threads into it"):
        tt.run(DOCUMENT, threads=1)


def test_interrupting_keeps_results(fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 4:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        tt.run(DOCUMENT, quiet=True)
    (folder,) = Path("results").iterdir()
    assert len(tt.load(folder).launches) == 4


def test_unknown_names_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'race_car'"):
        _ = tt.race_car
    assert "run" in dir(tt)


def test_profile_takes_what_run_takes() -> None:
    profile = tt.profile(network="mlp", backend=["fast", "slow"], threads=1, quiet=True)
    assert [case.row.case.backend for case in profile] == ["fast", "slow"]
    assert "plain step" in repr(profile)
    assert isinstance(tt.load(profile.path).profile, tt.Profile)
    document = {**DOCUMENT, "measure": {}}
    assert len(tt.profile(document, quiet=True, results="elsewhere")) == 2
    with pytest.raises(tt.InputError, match="only a train step can be profiled"):
        tt.profile(network="mlp", backend="fast", task="forward")


def test_no_module_takes_the_name_of_a_public_function() -> None:
    """Importing timetrial.NAME would put the module where the function was."""
    modules = {module.name for module in pkgutil.iter_modules(tt.__path__)}
    assert not modules & set(tt.__all__)
