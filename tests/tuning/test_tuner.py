"""Tuning: no winner without a race, whatever the first look said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine, network
from typer.testing import CliRunner

import timetrial as tt
from timetrial.cases.case import Case, Workload
from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.tuning import Tuned
from timetrial.tuning.search import Search
from timetrial.tuning.space import Space
from timetrial.tuning.trials import Trials
from timetrial.tuning.tuner import resume_tuning, tune_experiment


@pytest.fixture
def engine(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    for place in ("experiment.runner", "experiment.engine", "races.racing"):
        monkeypatch.setattr(f"timetrial.{place}.real_engine", fake.engine)
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)
    monkeypatch.setattr("timetrial.experiment.experiment._load_network", network)
    return fake


@pytest.fixture
def tuned(engine: FakeEngine, tmp_path: Path) -> Callable[..., Tuned]:
    def tune(*words: str, memory: int | None = None) -> Tuned:
        experiment = load_words(["network=mlp", *words])
        return tune_experiment(experiment, tmp_path / "results", memory=memory, quiet=True)

    return tune


def test_the_best_wins_its_race(tuned: Callable[..., Tuned]) -> None:
    found = tuned("backend=slow,other,fast")
    assert found.verdict == "better"
    assert found.winner.words == "fast"
    assert found.winner.ratio == pytest.approx(0.5, rel=0.02)
    assert "fast is faster than slow, by a race (3 of 3 measured)" in repr(found)
    assert "backend=fast" in found.settings.command()


def test_the_base_stays_where_nothing_is_better(tuned: Callable[..., Tuned]) -> None:
    found = tuned("backend=fast,slow,other")
    assert found.verdict == "worse"
    assert found.winner.words == "fast"
    assert "fast is best: other, the best of the others, is slower by a race" in found.sentence()


@pytest.mark.attempt
def test_a_first_look_is_no_win(engine: FakeEngine, tuned: Callable[..., Tuned]) -> None:
    """It looks twice as fast in its heat and is not in the race."""

    def factor(plan: Any) -> float:
        return (
            0.25
            if plan.purpose == "speed" and plan.case.backend == "slow"
            else 0.5
            if plan.case.backend == "slow"
            else 1
        )

    engine.factor = factor
    found = tuned("backend=fast,slow")
    assert found.trials[1].ratio == pytest.approx(0.5, rel=0.02)
    assert found.verdict == "same"
    assert found.winner.words == "fast"
    assert "fast is as good: slow, best of the others, is the same by a race" in found.sentence()


@pytest.mark.attempt
def test_one_lucky_look_does_not_go_to_the_race(engine: FakeEngine, tuned: Callable[..., Tuned]) -> None:
    """`other` is as fast as `fast` in its first launch alone: both ride again, together."""
    rode: Counter[str] = Counter()

    def factor(plan: Any) -> float:
        name = plan.case.backend
        if plan.purpose == "speed":
            rode[name] += 1
        return 0.65 if name == "other" and rode[name] == 1 else 1

    engine.factor = factor
    found = tuned("backend=slow,other,fast", "threads=1")
    looks = {one.words: len(one.looks) for one in found.trials[1:]}
    assert looks["fast"] == looks["other"] >= 2
    assert found.winner.words == "fast"


def test_all_ride_beside_the_base_and_are_proven_once(
    engine: FakeEngine, tuned: Callable[..., Tuned]
) -> None:
    """Whatever their threads and batch sizes; a proof counts in later heats of the search."""
    found = tuned("backend=slow,other,fast", "threads=1,2", "batch_size=16,64")
    heats = [plan for plan in engine.log if plan.purpose == "speed"]
    by_folder: dict[Path, set[str]] = {}
    for plan in heats:
        by_folder.setdefault(plan.folder.parent, set()).add(plan.case.id)
    assert len(by_folder) > 2
    assert all(found.trials[0].case in ids for ids in by_folder.values())
    assert all(plan.heat == 1 for plan in heats)
    race = found.race
    assert race is not None
    proofs = [plan for plan in engine.log if plan.purpose == "proof"]
    raced = len(race.record.experiment.cases)  # the race proves its own
    searched = [plan.case for plan in proofs[:-raced]]
    assert len({case.id for case in searched}) == len(searched)
    assert {case.training_id for case in searched} == {plan.case.training_id for plan in heats}
    assert len({case.training_id for case in searched}) == 6, "one of them for both numbers of threads"
    assert len(found.trials) == 12


@pytest.mark.attempt
@pytest.mark.parametrize("backend", ["crashes", "wrong", "mismatched", "is_nan"])
def test_who_is_not_ok_never_wins(tuned: Callable[..., Tuned], backend: str) -> None:
    found = tuned(f"backend=slow,{backend}")
    assert found.verdict is None
    assert found.winner.words == "slow"
    assert found.trials[1].ratio is None
    assert "slow it stays: no other candidate could be measured" in found.sentence()
    assert found.trials[1].outcome in repr(found)


def test_a_base_that_fails_once_does_not_end_it() -> None:
    """What was measured beside it has no ratio, and never wins."""
    work = Workload("mlp", "synthetic", 64, {"name": "sgd"})
    space = Space([Case(name, work) for name in ("one", "two", "three")])
    trials = Trials(space, Search(space, seed=1))

    def heat(**found: tuple[str, float]) -> Any:
        rows = [
            SimpleNamespace(
                case=SimpleNamespace(id=one.case.id),
                outcome=found[one.case.backend][0],
                reason=None,
                step_time_ns=SimpleNamespace(estimate=found[one.case.backend][1]),
            )
            for one in space.candidates
            if one.case.backend in found
        ]
        return SimpleNamespace(rows=rows)

    trials.note(heat(one=("ok", 4.0), two=("ok", 2.0)))
    trials.note(heat(one=("crash", 4.0), three=("ok", 1.0)))
    trials.note(heat(one=("crash", 4.0), two=("ok", 1.0)))  # nor what was measured before it
    ratios = {one.words: (one.ratio, one.reason) for one in trials.found.values()}
    failed = "the base failed beside it: crash"
    assert ratios == {"one": (1.0, None), "two": (0.5, None), "three": (None, failed)}
    trials.note(heat(one=("ok", 4.0), two=("ok", 1.0)))
    assert trials.found[space.candidates[1].case.id].ratio == pytest.approx(0.125**0.5)
    trials.note(heat(one=("ok", 4.0), two=("crash", 1.0)))  # a later look at which it fails puts it out
    assert trials.found[space.candidates[1].case.id].ratio is None


def size_of(plan: Any) -> int:
    return int(plan.case.workload.batch_size)


def test_batch_sizes_are_compared_by_samples(engine: FakeEngine, tuned: Callable[..., Tuned]) -> None:
    """A step of 64 takes twice as long as one of 16, and learns from four times as many."""
    engine.factor = lambda plan: size_of(plan) ** 0.5
    found = tuned("backend=fast", "batch_size=16,64")
    assert found.verdict == "better"
    assert found.winner.point == {"batch_size": "64"}
    assert found.winner.ratio == pytest.approx(0.5, rel=0.02)
    assert found.race is not None
    assert found.race.to_json()["metric"] == "samples_per_s"
    assert "batch_size=64 is faster than batch_size=16, by a race by samples per second" in repr(found)
    assert "batch_size=64" in found.settings.command()


def test_a_larger_batch_that_is_no_faster_does_not_win(
    engine: FakeEngine, tuned: Callable[..., Tuned]
) -> None:
    engine.factor = size_of
    found = tuned("backend=fast", "batch_size=16,64")
    assert found.verdict == "same"
    assert found.winner.point == {"batch_size": "16"}


@pytest.mark.attempt
def test_who_holds_more_than_allowed_is_out(engine: FakeEngine, tuned: Callable[..., Tuned]) -> None:
    engine.factor = lambda plan: size_of(plan) ** 0.5
    engine.held = lambda plan: size_of(plan) * 2**20
    found = tuned("backend=fast", "batch_size=16,64,32", memory=50 * 2**20)
    assert found.winner.point == {"batch_size": "32"}
    out = next(one for one in found.trials if one.point == {"batch_size": "64"})
    assert out.ratio is None
    assert out.reason == "it held 64 MB, and 50 MB are the most allowed (memory)"
    assert out.reason in repr(found)
    with pytest.raises(InputError, match="cannot be measured: it held 64 MB, and 50 MB are the most"):
        tuned("backend=fast", "batch_size=64,16", memory=50 * 2**20)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["backend=fast"], "there is nothing to tune"),
        (["backend=fast,slow", "task=train,gradient"], "optimizer or task differ"),
        (["backend=fast,slow", "optimizer.learning_rate=0.01,0.02"], "optimizer or task differ"),
        (["backend=crashes,fast"], "the base, the first of the cases, cannot be measured: crash"),
        (["backend=absent,fast"], "the base, the first of the cases, cannot be measured: unavailable"),
    ],
)
def test_bad_input(tuned: Callable[..., Tuned], words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tuned(*words)


def test_it_goes_on_where_it_was_ended(
    engine: FakeEngine, tuned: Callable[..., Tuned], tmp_path: Path
) -> None:
    words = ["backend=slow,other,fast", "threads=1,2", "affinity=0,1"]

    def stop(plan: Any) -> None:
        if plan.purpose == "race":
            raise KeyboardInterrupt

    engine.before = stop
    with pytest.raises(KeyboardInterrupt):
        tuned(*words)
    engine.before = lambda plan: None
    heats = [plan.case.id for plan in engine.log if plan.purpose == "speed"]
    [folder] = (tmp_path / "results").iterdir()
    before = len(engine.log)
    found = resume_tuning(folder, quiet=True)
    assert found.verdict == "better"
    again = [plan.case.id for plan in engine.log[before:] if plan.purpose == "speed"]
    assert set(again) & set(heats) <= {found.trials[0].case}
    assert len({one.case for one in found.trials}) == len(found.trials) == 12
    with pytest.raises(InputError, match=r"is no folder of `timetrial tune`"):
        resume_tuning(tmp_path)


def test_the_command(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["tune", "network=mlp", "backend=slow,fast", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["verdict"], said["winner"]["point"]) == ("better", {"backend": "fast"})
    assert said["command"].startswith("timetrial run network=mlp ")
    [folder] = Path("results").iterdir()
    refused = CliRunner().invoke(app, ["tune", "network=mlp", "--resume", str(folder)])
    assert refused.exit_code == 2
    assert "Leave that out" in refused.stderr
    refused = CliRunner().invoke(app, ["tune", "--memory", "1GB", "--resume", str(folder)])
    assert "--memory 1GB was given as well" in refused.stderr
    refused = CliRunner().invoke(app, ["tune", "network=mlp", "backend=slow,fast", "--memory", "lots"])
    assert (refused.exit_code, "memory='lots'" in refused.stderr) == (2, True)


def test_what_it_would_do(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("timetrial.tuning.forecast.real_engine", engine.engine)
    words = ["tune", "network=mlp", "backend=slow,fast,absent", "threads=1,2", "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--budget", "160s"])
    assert done.exit_code == 0, done.output
    assert "4 candidates that differ in backend (2), threads (2); the base is slow 1." in done.output
    assert "First looks 80 s, about 4 of 4; finals 20 s; race 60 s" in done.output
    short = json.loads(CliRunner().invoke(app, [*words, "--budget", "61s", "--json"]).stdout)
    assert (short["candidates"], short["looks"], short["race_s"]) == (4, 2, 60.0)
    assert not engine.log
    assert not list(tmp_path.iterdir())
    refused = CliRunner().invoke(app, ["tune", "network=mlp", "backend=fast", "--dry-run"])
    assert "there is nothing to tune" in refused.stderr


@pytest.mark.alone
def test_for_real(tmp_path: Path) -> None:
    """Half of the work is faster, and a race says so."""
    found = tt.tune(
        network="mlp",
        dataset="synthetic",
        backend="null",
        threads=1,
        budget="10m",  # three candidates are soon looked at; the race ends with its verdict
        results=tmp_path,
        quiet=True,
        **{"null.work_units": [2000, 1000, 2000 + 1]},
    )
    assert found.verdict == "better", found
    assert found.winner.point == {"null.work_units": "1000"}
    assert found.settings.environment()["OMP_NUM_THREADS"] == "1"


def test_steps_of_ones_own_are_tuned_without_a_network(engine: FakeEngine, tmp_path: Path) -> None:
    experiment = load_words(["callable=mine:make", "threads=1,2"])
    found = tune_experiment(experiment, tmp_path / "results", quiet=True)
    assert [one.words for one in found.trials] == ["threads=1", "threads=2"]
    assert found.verdict is not None
