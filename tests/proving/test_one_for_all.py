"""Cases that differ only in what cannot change what is computed have one proof, and all rows say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import Interrupted, check_experiment, resume_experiment, run_experiment
from timetrial.page.run_section import run_section
from timetrial.races import Race
from timetrial.records.model import LaunchRecord, Outcome
from timetrial.report.detail import CaseDetail
from timetrial.report.rendering import to_text
from timetrial.results.results import Results

Run = Callable[..., Results]


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Run:
    def run(*words: str, how: Any = run_experiment) -> Results:
        experiment = load_words([*_with_network(words), "launches=2"], load_network=fakes.network)
        results: Results = how(experiment, results_folder, quiet=True, engine=fake.engine())
        return results

    return run


def _with_network(words: tuple[str, ...]) -> list[str]:
    return [*words] if any(one.startswith("network=") for one in words) else ["network=mlp", *words]


def proofs(fake: FakeEngine) -> list[Any]:
    return [plan for plan in fake.log if plan.purpose == "proof"]


def folders(path: Path) -> list[str]:
    return sorted(folder.name for folder in (path / "proof").iterdir())


def fail(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, threads: str, outcome: Outcome) -> None:
    """Proofs of so many threads end so."""
    usual = fakes._failed

    def failed(record: LaunchRecord, backend: str, plan: Any) -> LaunchRecord:
        if plan.purpose == "proof" and plan.case.settings.get("threads") == threads:
            return record.model_copy(update={"outcome": outcome, "reason": "of its own"})
        return usual(record, backend, plan)

    monkeypatch.setattr(fakes, "_failed", failed)


def test_one_proof_and_two_proven_rows(run: Run, fake: FakeEngine) -> None:
    results = run("backend=fast", "threads=1,2")
    first, second = results.rows
    assert folders(results.path) == [first.case.id]
    assert [row.parity and row.parity.status for row in results.rows] == ["passed", "passed"]
    assert [row.outcome for row in results.rows] == ["ok", "ok"]
    assert (first.proof_from, second.proof_from) == (None, first.case.id)
    assert [case["proof_from"] for case in results.to_json()["cases"]] == [None, first.case.id]
    assert all(plan.proof is not None for plan in fake.log if plan.purpose == "speed")
    assert "all contenders proven equal" in to_text(results)
    assert f"of case {first.case.id}" in dict(CaseDetail(second).facts())["proof"]
    assert "of case" not in dict(CaseDetail(first).facts())["proof"]
    assert f"of case {first.case.id}" in str(run_section(results, "one"))


def test_what_others_were_proven_with_is_not_the_rows_own(run: Run, fake: FakeEngine) -> None:
    """A check launches a row that was not proven itself, briefly: it says what its own settings were."""
    _, second = run("backend=fast", "threads=1,2", how=check_experiment).rows
    assert second.parity is not None
    assert [(one.name, one.effective) for one in second.reported] == [("threads", "2")]
    brief = [plan for plan in fake.log if plan.purpose == "speed"]
    assert [plan.case.settings["threads"] for plan in brief] == ["2"]


@pytest.mark.parametrize(
    "words", ["blas.library=one,other", "network=mlp,lenet5", "batch_size=64,32", "task=train,forward"]
)
def test_what_decides_the_arithmetic_is_proven_each(run: Run, fake: FakeEngine, words: str) -> None:
    run("backend=fast", "threads=1,2", words)
    assert len(proofs(fake)) == 2


def test_where_a_proof_fails_the_others_are_proven_themselves(run: Run, fake: FakeEngine) -> None:
    results = run("backend=wrong,fast", "threads=1,2")
    assert len(proofs(fake)) == 3
    refused = [row for row in results.rows if row.case.backend == "wrong"]
    assert [row.outcome for row in refused] == ["wrong", "wrong"]
    assert {plan.case.backend for plan in fake.log if plan.purpose == "speed"} == {"fast"}


@pytest.mark.parametrize("outcome", ["wrong", "nan", "mismatch", "capped", "oom", "unavailable", "crash"])
def test_what_may_be_one_cases_own_fault_refuses_that_one(
    run: Run, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    fail(fake, monkeypatch, "1", outcome)
    first, second = run("backend=fast", "threads=1,2").rows
    assert (first.outcome, second.outcome) == (outcome, "ok")
    assert second.proof_from is None
    assert [plan.case.settings["threads"] for plan in proofs(fake)] == ["1", "2"]
    assert {plan.case.id for plan in fake.log if plan.purpose == "speed"} == {second.case.id}


def test_steps_of_ones_own_are_looked_at_each(run: Run, fake: FakeEngine) -> None:
    run("callable=package.module:make_step", "threads=1,2")
    assert len(proofs(fake)) == 2


def test_what_is_resumed_is_not_proven_again(run: Run, fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if plan.purpose == "speed" and plan.block == 1:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(Interrupted) as stopped:
        run("backend=fast,slow", "threads=1,2")
    fake.before = lambda plan: None
    results = resume_experiment(stopped.value.results.path, quiet=True, engine=fake.engine())
    assert len(proofs(fake)) == 2
    assert [row.outcome for row in results.rows] == ["ok"] * 4
    assert all(plan.proof is not None for plan in fake.log if plan.purpose == "speed")


def test_sides_of_a_race_share_a_proof(raced: Callable[..., Race], fake: FakeEngine) -> None:
    race = raced("backend=fast", "threads=1,2")
    assert len(proofs(fake)) == 1
    assert len(folders(race.folder)) == 1
    parities = [race.parity(case.id) for case in race.cases]
    assert [one and one.status for one in parities] == ["passed", "passed"]
    assert all(plan.proof is not None for plan in fake.log if plan.purpose == "race")
    assert "proven equal" in to_text(race)


def test_both_sides_are_refused_each_by_its_proof(raced: Callable[..., Race], fake: FakeEngine) -> None:
    race = raced("backend=wrong", "threads=1,2")
    assert len(proofs(fake)) == 2
    assert race.record is not None
    assert race.end is not None
    assert (race.end.reason or "").count("is wrong: gradient conv1.weight") == 2
