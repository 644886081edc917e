from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment import estimate
from timetrial.experiment.estimate import forecast
from timetrial.experiment.experiment import Experiment, load_words
from timetrial.experiment.order import shuffled_block
from timetrial.experiment.runner import Interrupted, profile_experiment, run_experiment
from timetrial.experiment.validate import validate
from timetrial.records.model import Parity
from timetrial.results.results import Results

Run = Callable[..., Results]


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)


@pytest.fixture
def load(networks: Any) -> Callable[..., Experiment]:
    return lambda *words: load_words(["network=mlp", *words], load_network=networks)


@pytest.fixture
def run(load: Callable[..., Experiment], fake: FakeEngine, results_folder: Path) -> Run:
    return lambda *words: run_experiment(load(*words), results_folder, quiet=True, engine=fake.engine())


def test_proofs_then_speed_then_learning(run: Run, fake: FakeEngine) -> None:
    run("backend=fast,slow", "threads=1,2", "epochs=12", "launches=5", "learning_seeds=3")
    purposes = [plan.purpose for plan in fake.log]
    assert purposes == ["proof"] * 2 + ["speed"] * 20 + ["learning"] * 4
    assert all(plan.proof is not None for plan in fake.log if plan.purpose == "speed")
    assert {plan.seed for plan in fake.log if plan.purpose == "speed"} == {1}
    learning = [plan for plan in fake.log if plan.purpose == "learning"]
    assert [plan.seed for plan in learning] == [1, 1, 2, 3]
    assert [plan.case.backend for plan in learning[2:]] == ["slow", "fast"], "one for both, in turns"
    assert [plan.proof is None for plan in learning] == [plan.seed != 1 for plan in learning]


def test_proofs_of_the_same_work_come_together(run: Run, fake: FakeEngine) -> None:
    run("backend=fast,slow", "batch_size=64,32", "blas.library=one,other", "launches=1")
    proven = [plan.case for plan in fake.log if plan.purpose == "proof"]
    assert [case.workload.batch_size for case in proven] == [64] * 4 + [32] * 4
    assert [case.backend for case in proven] == ["fast", "fast", "slow", "slow"] * 2
    fake.log.clear()
    fake.frameworks = ("slow",)
    run("backend=slow,fast,other", "batch_size=64,32", "blas.library=one,other", "launches=1")
    proven = [plan.case for plan in fake.log if plan.purpose == "proof"]
    assert [case.backend for case in proven] == ["fast", "slow", "fast", "other", "slow", "other"] * 2


def test_one_learns_for_all_that_differ_in_threads_only(run: Run, fake: FakeEngine) -> None:
    words = (
        "backend=fast,slow",
        "threads=1,2",
        "blas.library=one,other",
        "epochs=12",
        "launches=2",
        "learning_seeds=5",
    )
    results = run(*words)
    learned = Counter(plan.case.id for plan in fake.log if plan.purpose == "learning")
    assert {row.case.settings["threads"] for row in results.rows if row.case.id in learned} == {"1"}
    assert len(learned) == 4  # two contenders, each with two libraries
    assert set(learned.values()) == {2}  # the first seed, and one of four more for all
    by_id = {row.case.id: row for row in results.rows}
    for row in results.rows:
        assert row.accuracy is not None
        if row.case.id not in learned:
            teacher = by_id[str(row.accuracy_from)]
            assert row.accuracy == teacher.accuracy
            assert {**teacher.case.settings, "threads": "2"} == dict(row.case.settings)
    fake.log.clear()
    results = run(*words, "learning=every")
    assert len([plan for plan in fake.log if plan.purpose == "learning"]) == 8 * 5
    assert {row.accuracy_from for row in results.rows} == {None}


def test_what_is_not_proven_learns_for_itself(run: Run, fake: FakeEngine) -> None:
    fake.parity["fast"] = Parity(status="unproven")
    results = run("backend=fast", "threads=1,2", "epochs=12", "launches=2", "learning_seeds=2")
    assert len([plan for plan in fake.log if plan.purpose == "learning"]) == 4
    assert {row.accuracy_from for row in results.rows} == {None}


def test_seeds_of_who_fails_are_learned_by_others(run: Run, fake: FakeEngine) -> None:
    run("backend=fast,forgetful", "epochs=12", "launches=2", "learning_seeds=4")
    learned = [(plan.case.backend, plan.seed) for plan in fake.log if plan.purpose == "learning"]
    assert sorted(learned) == [("fast", 1), ("fast", 2), ("fast", 3), ("fast", 4), ("forgetful", 1)]


def test_what_computes_less_exactly_learns_each_seed(run: Run, fake: FakeEngine) -> None:
    fake.parity["fast"] = Parity(status="passed", notes=["reduced"])
    run("backend=fast,slow,other", "epochs=12", "launches=2", "learning_seeds=3")
    learned = Counter(plan.case.backend for plan in fake.log if plan.purpose == "learning")
    assert learned == {"fast": 3, "slow": 2, "other": 2}


def test_a_block_has_each_case_once_and_blocks_differ(run: Run, fake: FakeEngine) -> None:
    run("backend=fast,slow,other", "threads=1,2", "launches=8")
    blocks: dict[int, list[str]] = {}
    for plan in fake.log:
        if plan.purpose == "speed":
            blocks.setdefault(plan.block, []).append(plan.case.id)
    assert len(blocks) == 8
    assert all(len(order) == len(set(order)) == 6 for order in blocks.values())
    assert len({tuple(order) for order in blocks.values()}) > 1


def test_the_seed_decides_the_order() -> None:
    first = [shuffled_block(range(9), seed=1, purpose="speed", block=block) for block in range(3)]
    assert first == [shuffled_block(range(9), seed=1, purpose="speed", block=block) for block in range(3)]
    assert first != [shuffled_block(range(9), seed=2, purpose="speed", block=block) for block in range(3)]


def test_no_files_for_those_who_look_at_no_data(run: Run, fake: FakeEngine) -> None:
    run("backend=fast,blind", "launches=1")
    assert {plan.case.backend: plan.prepared.reads_data for plan in fake.log} == {
        "fast": True,
        "blind": False,
    }


def test_positions_are_balanced() -> None:
    firsts = Counter(shuffled_block("abcd", seed=1, purpose="speed", block=block)[0] for block in range(400))
    assert all(70 <= count <= 130 for count in firsts.values())


@pytest.mark.attempt
def test_a_failure_is_data(run: Run, fake: FakeEngine) -> None:
    results = run("backend=fast,crashes,hangs,wrong,absent,mismatched,flaky", "launches=5")
    outcomes = {row.case.backend: row.outcome for row in results}
    assert outcomes == {
        "fast": "ok", "crashes": "crash", "hangs": "hang", "wrong": "wrong", "absent": "unavailable",
        "mismatched": "mismatch", "flaky": "crash",
    }  # fmt: skip
    speed = Counter(plan.case.backend for plan in fake.log if plan.purpose == "speed")
    assert speed == {"fast": 5, "crashes": 2, "hangs": 1, "mismatched": 2, "flaky": 5}
    rows = {row.case.backend: row for row in results}
    assert rows["flaky"].outcomes == {"ok": 5, "crash": 1}  # the proof included
    assert rows["flaky"].ok == 4
    assert rows["mismatched"].step_time_ns is not None
    assert rows["mismatched"].ratio is None
    assert rows["wrong"].step_time_ns is None
    assert "pip install absent" in str(rows["absent"].reason)


def test_repeated_cases_share_their_proof(run: Run, fake: FakeEngine) -> None:
    results = run("backend=fast", "threads=1,1", "launches=6")
    assert [plan.purpose for plan in fake.log].count("proof") == 1
    first, second = results.rows
    assert first.parity is not None
    assert second.parity == first.parity
    assert second.reference == first.case.id
    assert second.ratio is not None
    assert second.ratio.estimate == pytest.approx(1)


def test_no_learning_without_epochs_or_for_other_tasks(run: Run, fake: FakeEngine) -> None:
    run("backend=fast", "launches=1")
    run("backend=fast", "launches=1", "task=forward", "epochs=2")
    assert "learning" not in {plan.purpose for plan in fake.log}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("backend=fst",), "no backend 'fst'"),
        (("backend=fast", "batch_size=2000"), "batch_size is 2000"),
        (("backend=fast", "no.knob=mkl"), "no setting 'no.knob'"),
    ],
)
def test_bad_input_leaves_nothing_behind(
    run: Run, results_folder: Path, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(*words)
    assert not results_folder.exists()


@pytest.mark.attempt
def test_results_folder_that_cannot_be_written(
    load: Callable[..., Experiment], fake: FakeEngine, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="Records cannot be kept in"):
        run_experiment(load("backend=fast"), file / "results", quiet=True, engine=fake.engine())
    assert not fake.log


@pytest.mark.attempt
def test_interruption_keeps_what_has_finished(run: Run, fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 5:
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(Interrupted) as caught:
        run("backend=fast,slow", "launches=3")
    results = caught.value.results
    assert len(results.launches) == 5
    assert [row.outcome for row in results] == ["ok", "ok"]
    assert fake.locked == 0


@pytest.mark.attempt
def test_a_signal_between_two_lines_of_a_launch_leaves_nothing(run: Run, fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 5:
            (plan.folder / "home").mkdir(parents=True)  # as make_folder() does, before anything guards it
            raise KeyboardInterrupt

    fake.before = interrupt
    with pytest.raises(Interrupted) as caught:
        run("backend=fast,slow", "launches=3")
    folder = caught.value.results.path
    assert not [*folder.glob("**/home")]
    assert len([*folder.glob("launches/*")]) == 3  # and two proofs


def test_unavailable_rows_only(run: Run, fake: FakeEngine) -> None:
    results = run("backend=absent", "launches=2")
    assert [row.outcome for row in results] == ["unavailable"]
    assert not fake.log


def test_forecast(load: Callable[..., Experiment], fake: FakeEngine) -> None:
    experiment = load("backend=fast,absent", "threads=1,2", "epochs=12", "launches=5")
    expected = forecast(experiment, validate(experiment.cases, fake.engine()))
    assert {stage: planned.launches for stage, planned in expected.stages.items()} == {
        "proof": 1,
        "speed": 10,
        "learning": 3,
        "resources": 0,
    }
    assert expected.unavailable == 2
    assert 10 < expected.seconds < 60
    assert expected.most_seconds == expected.seconds, "so many launches were asked for, no more follow"
    assert 0.02 < expected.visible_difference < 0.04


def test_forecast_of_launches_that_follow(load: Callable[..., Experiment], fake: FakeEngine) -> None:
    experiment = load("backend=fast,slow,other", "threads=1,2")
    expected = forecast(experiment, validate(experiment.cases, fake.engine()))
    assert (expected.stages["speed"].launches, expected.most_launches) == (24, 8)
    assert 1.5 * expected.seconds < expected.most_seconds < 2 * expected.seconds, "one proof, twice"


def test_the_judge_of_a_large_network_takes_its_time(
    load: Callable[..., Experiment], fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load("backend=fast", "threads=1", "launches=5")
    ready = validate(experiment.cases, fake.engine())
    expected = forecast(experiment, ready)
    checked = ready[0].checked
    assert checked is not None
    assert checked.network is not None
    work = checked.network.multiply_accumulates("gradient")
    monkeypatch.setattr(estimate, "_JUDGED_PER_S", work / 10)  # of which this asks for fourteen
    assert forecast(experiment, ready).seconds == pytest.approx(expected.seconds + 140, rel=0.01)


def test_proofs_then_one_profile_of_what_is_proven(
    load: Callable[..., Experiment], fake: FakeEngine, results_folder: Path
) -> None:
    experiment = load("backend=fast,wrong,slow", "threads=1,2", "epochs=12", "launches=5")
    profile = profile_experiment(experiment, results_folder, quiet=True, engine=fake.engine())
    assert [plan.purpose for plan in fake.log] == ["proof"] * 4 + ["profile"] * 4
    assert all(plan.proof is not None for plan in fake.log if plan.purpose == "profile")
    assert [case.step is not None for case in profile] == [True, True, False, False, True, True]
    record = profile.experiment
    assert (record.launches, record.learning_seeds, record.profiles) == (0, 0, 1)
    work = {layer.name: layer for layer in record.cases[0].layers}
    assert work["conv1"].parameters == 6
    assert work["conv1"].multiply_accumulates == {
        "forward": 200_000, "backward_data": 0, "backward_weights": 200_000
    }  # fmt: skip
