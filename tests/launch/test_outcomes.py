"""Every way in which a contender can end becomes a typed outcome, and nothing is left behind."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, words

from timetrial.core import stamp_boundaries, stamp_times_ns
from timetrial.launch import LaunchPlan, Limits, Measure, run_launch
from timetrial.launch.decisions import learning_stages
from timetrial.processes.answers import answers_of
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Evaluation, LaunchRecord
from timetrial.records.store import read_answers

IMPATIENT = dataclasses.replace(SHORT, limits=Limits(start_timeout_s=8.0, progress_timeout_s=2.0))
# Counted in steps, however slow the machine is at the moment.
STEPS = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=45)
PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


def null_plan(folder: Path, fail: str, **settings: str) -> LaunchPlan:
    return make_plan(
        folder / "launch",
        "null",
        settings={"null.fail": fail, "null.step_us": "500", "threads": "1", **settings},
        measure=IMPATIENT,
    )


def processes_of(folder: Path) -> list[int]:
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def check_left_nothing(folder: Path, record: LaunchRecord) -> None:
    assert processes_of(folder) == []
    assert LaunchRecord.model_validate_json((folder / "record.json").read_text()) == record
    assert not (folder / "home").exists()
    assert not (folder / "tmp").exists()


@pytest.mark.effect("null.fail")
@pytest.mark.attempt
@pytest.mark.parametrize(
    ("fail", "outcome", "said"),
    [
        ("throw", "crash", "an exception, as asked"),
        ("abort", "crash", "SIGABRT during a segment (warmup)"),
        ("segv", "crash", "SIGSEGV during a segment (warmup)"),
        ("exit", "crash", "exit code 7 during a segment (warmup)"),
        ("hang", "hang", "no progress for 2 s of running time"),
        ("nan", "nan", "the loss is nan at step 4"),
        ("oom", "oom", "out of memory"),
        ("print", "ok", None),
        ("wrong_threads", "mismatch", "threads asked 1, in force 2"),
        ("unsupported_layer", "unavailable", "the backend has no layer 'flatten'"),
    ],
)
def test_failures_of_a_step_are_typed(tmp_path: Path, fail: str, outcome: str, said: str | None) -> None:
    record = run_launch(null_plan(tmp_path, fail))
    assert record.outcome == outcome, words(record)
    assert (said in (record.reason or "")) if said else record.reason is None
    check_left_nothing(tmp_path / "launch", record)


@pytest.mark.effect("null.fail_at")
@pytest.mark.attempt
@pytest.mark.parametrize(
    ("fail", "outcome", "said"),
    [
        ("throw", "crash", "(build)"),
        ("segv", "crash", "SIGSEGV during start"),
        ("exit", "crash", "exit code 7 during start"),
        ("oom", "oom", "out of memory (build)"),
        ("hang", "hang", "during start"),
    ],
)
def test_failures_of_a_build_are_typed(tmp_path: Path, fail: str, outcome: str, said: str) -> None:
    record = run_launch(null_plan(tmp_path, fail, **{"null.fail_at": "build"}))
    assert record.outcome == outcome, words(record)
    assert said in (record.reason or "")
    assert record.segments == []
    check_left_nothing(tmp_path / "launch", record)


def test_a_slow_start_is_no_hang(tmp_path: Path) -> None:
    record = run_launch(null_plan(tmp_path, "slow_start"))
    assert record.outcome == "ok", words(record)
    build = {phase.name: phase.ns for phase in record.phases}
    assert build["build"] - build["import"] > 2.9e9


@pytest.mark.attempt
def test_what_a_contender_prints_is_kept_and_obeyed_by_nobody(tmp_path: Path) -> None:
    record = run_launch(null_plan(tmp_path, "print"))
    assert record.outcome == "ok", words(record)
    assert '{"event": "done"}' in record.stdout
    assert "stderr" in record.stderr


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("behavior", "outcome", "said"),
    [
        ("raise", "crash", "RuntimeError: planted: an exception in a step (run)"),
        ("memory", "oom", "MemoryError: planted"),
        ("exit", "crash", "exit code 3"),
        ("kill", "crash", "SIGKILL"),
        ("print", "ok", None),
        ("children", "ok", None),
    ],
)
def test_a_framework_fails_in_the_same_words(
    tmp_path: Path, behavior: str, outcome: str, said: str | None
) -> None:
    plan = make_plan(tmp_path / "launch", PLANTED, settings={"planted.behavior": behavior}, measure=STEPS)
    record = run_launch(plan)
    assert record.outcome == outcome, words(record)
    assert (said in (record.reason or "")) if said else record.reason is None
    if behavior == "raise":
        assert "Traceback" in record.stderr
    check_left_nothing(tmp_path / "launch", record)


@pytest.mark.attempt
def test_a_killed_contender_leaves_its_stamps(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "launch", PLANTED, settings={"planted.behavior": "kill"}, measure=STEPS)
    record = run_launch(plan)
    assert record.outcome == "crash", words(record)
    steps = sum(segment.steps for segment in record.segments)
    assert steps == 11  # the 12th never ended
    stamps = np.fromfile(tmp_path / "launch" / "stamps.bin", np.uint64)
    losses = np.fromfile(tmp_path / "launch" / "losses.bin", np.float64)
    assert len(losses) == 11
    assert np.all(np.isfinite(losses))
    last = record.segments[-1]
    window = stamps[last.first_stamp : last.first_stamp + last.stamps]
    assert stamp_boundaries(window)[0] == 0
    assert np.all(np.diff(stamp_times_ns(stamps)) >= 0)


def test_segments_name_their_stamps_and_losses(tmp_path: Path) -> None:
    record = run_launch(null_plan(tmp_path, "none"))
    assert record.outcome == "ok", words(record)
    assert record.segments[0].kind == "first"
    assert {segment.kind for segment in record.segments} - {"warmup"} == {"first", "steady", "detailed"}
    stamps = np.fromfile(tmp_path / "launch" / "stamps.bin", np.uint64)
    losses = np.fromfile(tmp_path / "launch" / "losses.bin", np.float64)
    assert sum(segment.stamps for segment in record.segments) == len(stamps)
    assert sum(segment.losses for segment in record.segments) == len(losses)
    for segment in record.segments:
        mine = stamps[segment.first_stamp : segment.first_stamp + segment.stamps]
        assert np.count_nonzero(stamp_boundaries(mine) == 1) == segment.steps == segment.losses
        assert stamp_boundaries(mine)[0] == 0
    steady = [segment for segment in record.segments if segment.kind == "steady"]
    took = stamp_times_ns(stamps[steady[0].first_stamp : steady[-1].first_stamp + steady[-1].stamps])
    assert np.median(np.diff(took)) > 490_000


@pytest.mark.parametrize("backend", ["eigen", pytest.param("pytorch", marks=pytest.mark.full)])
def test_a_last_batch_that_is_not_full_is_tested_and_what_fills_it_is_not(
    tmp_path: Path, backend: str
) -> None:
    """360 test images are ten batches of 36, or five of 64 and 40 more: the same weights answer the same."""
    if backend == "pytorch":
        pytest.importorskip("torch")
    found = []
    for size in (36, 64):
        plan = make_plan(
            tmp_path / str(size),
            backend,
            purpose="learning",
            dataset="digits8",
            batch_size=size,
            learning_rate=0.005,
        )
        record = run_launch(plan)
        assert record.outcome == "ok", words(record)
        assert record.untrained is not None
        found.append(record.untrained)
    assert [one.samples for one in found] == [360, 360]
    assert found[0].accuracy == found[1].accuracy
    assert found[0].loss == pytest.approx(found[1].loss, rel=1e-6)


@pytest.mark.attempt
def test_weights_that_have_learned_before_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "timetrial.processes.answers.most_untrained", lambda *_: -1.0
    )  # whoever answers at all
    record = run_launch(make_plan(tmp_path / "launch", "eigen", purpose="learning", learning_rate=0.005))
    assert record.outcome == "ok", words(record)
    (warning,) = [one for one in record.warnings if "before its first step" in one]
    assert warning.endswith("untrained weights are on -100 % at most")


@pytest.mark.attempt
def test_a_folder_is_used_once(tmp_path: Path) -> None:
    run_launch(null_plan(tmp_path, "none"))
    before = (tmp_path / "launch" / "record.json").read_text()
    with pytest.raises(Exception, match="has a record already"):
        run_launch(null_plan(tmp_path, "none"))
    assert (tmp_path / "launch" / "record.json").read_text() == before


def test_learning_evaluates_after_each_epoch(tmp_path: Path) -> None:
    # Slow enough that rounding stays rounding: at 0.02 the loss of a second epoch depends on the CPU.
    plan = make_plan(tmp_path / "launch", "eigen", purpose="learning", learning_rate=0.005)
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert record.stop_reason == "epochs"
    steps = plan.prepared.steps_per_epoch
    assert [(e.epoch, e.steps) for e in record.evaluations] == [(1, steps), (2, 2 * steps)]
    assert record.untrained is not None
    assert (record.untrained.epoch, record.untrained.steps) == (0, 0)
    assert record.untrained.loss > record.evaluations[0].loss
    assert not any("before its first step" in one for one in record.warnings)
    assert record.evaluations[-1].loss < record.evaluations[0].loss
    assert record.evaluations[-1].samples == plan.prepared.test_samples
    answers = read_answers(plan.folder)
    assert answers is not None
    assert np.mean(answers[0] == answers[1]) == pytest.approx(record.evaluations[-1].accuracy)
    truth = np.load(plan.prepared.job["streams"]["test"]["tensors"]["labels"])
    np.testing.assert_array_equal(answers[1], truth)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("predictions", "outcome", "words"),
    [
        (None, "crash", "left no readable predictions.npy: No such file"),
        (np.zeros((3, 4), np.float32), "crash", r"have the shape \(3, 4\); expected \(4, 4\)"),
        (np.zeros((4, 0), np.float32), "crash", r"have the shape \(4, 0\); expected \(4, 4\)"),
        (np.eye(4, dtype=np.float32), "wrong", "says that 75.0000% of 4 .* its predictions are for 4 of 4"),
    ],
)
def test_an_accuracy_that_does_not_follow_from_the_predictions_is_wrong(
    tmp_path: Path, predictions: np.ndarray | None, outcome: str, words: str
) -> None:
    np.save(tmp_path / "labels.npy", np.arange(4))
    if predictions is not None:
        np.save(tmp_path / "predictions.npy", predictions)
    said = Evaluation(steps=1, epoch=1, accuracy=0.75, loss=0.1, samples=4, duration_ns=1)
    with pytest.raises(LaunchError, match=words) as failure:
        answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 4)
    assert failure.value.outcome == outcome


@pytest.mark.attempt
def test_a_prediction_that_is_no_number_is_no_answer(tmp_path: Path) -> None:
    predictions = np.eye(4, dtype=np.float32)
    predictions[2, 1] = np.nan
    np.save(tmp_path / "labels.npy", np.arange(4))
    np.save(tmp_path / "predictions.npy", predictions)
    said = Evaluation(steps=1, epoch=1, accuracy=0.75, loss=0.1, samples=4, duration_ns=1)
    answers = answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 4)
    assert answers.tolist() == [[0, 1, -1, 3], [0, 1, 2, 3]]


@pytest.mark.attempt
def test_of_steps_their_classes_are_counted_again(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([[0, 1, -1], [2, -1, -1]]))
    np.save(tmp_path / "predictions.npy", np.array([[0, 2, 1], [-1, 0, 0]]))
    said = Evaluation(steps=1, epoch=1, accuracy=1 / 3, loss=0.1, samples=3, duration_ns=1)
    answers = answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 4)
    assert answers.tolist() == [[0, 2, -1], [0, 1, 2]]
    for lie in ({"accuracy": 2 / 3}, {"samples": 6}):
        with pytest.raises(LaunchError, match=r"of . test steps are right; its predictions are for 1 of 3"):
            answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said.model_copy(update=lie), 4)
    np.save(tmp_path / "predictions.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(LaunchError, match=r"shape \(2, 3\) of float32; expected \(2, 3\) of int64"):
        answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 4)
    for outside in (4, -2):
        np.save(tmp_path / "predictions.npy", np.array([[0, 2, 1], [-1, 0, outside]]))
        with pytest.raises(LaunchError, match=f"have the class {outside}; expected -1 to 3"):
            answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 4)


@pytest.mark.attempt
def test_answers_of_a_large_vocabulary_are_kept(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([[40_000, 70_000]]))
    np.save(tmp_path / "predictions.npy", np.array([[40_000, 40_000]]))
    said = Evaluation(steps=1, epoch=1, accuracy=0.5, loss=0.1, samples=2, duration_ns=1)
    answers = answers_of(tmp_path / "predictions.npy", tmp_path / "labels.npy", said, 100_000)
    assert answers.tolist() == [[40_000, 40_000], [40_000, 70_000]]


@pytest.mark.attempt
def test_timed_losses_are_compared_with_the_proof(tmp_path: Path) -> None:
    """The first step of each pass at twice the rate, everything else right."""
    proof = run_launch(make_plan(tmp_path / "proof", PLANTED, purpose="proof"))
    good = run_launch(make_plan(tmp_path / "good", PLANTED, proof=proof.parity))
    assert good.outcome == "ok", words(good)
    assert good.end is not None
    assert not any("workload" in one.tensor for one in good.end.comparisons)
    settings = {"planted.defect": "early_rate"}
    bad = run_launch(make_plan(tmp_path / "bad", PLANTED, proof=proof.parity, settings=settings))
    assert bad.outcome == "wrong"
    assert "again, step 1: parameter " in (bad.reason or "")


@pytest.mark.attempt
def test_in_a_large_network_too_a_first_step_at_twice_the_rate_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.launch.gate.LARGE_BYTES", 1)
    proof = run_launch(make_plan(tmp_path / "proof", PLANTED, purpose="proof"))
    settings = {"planted.defect": "early_rate"}
    bad = run_launch(make_plan(tmp_path / "bad", PLANTED, proof=proof.parity, settings=settings))
    assert bad.outcome == "wrong"
    assert "again, step 1: parameter " in (bad.reason or "")


@pytest.mark.attempt
def test_a_timed_launch_that_trains_nothing_is_wrong(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", PLANTED, settings={"planted.defect": "no_update"}))
    assert record.outcome == "wrong"
    assert "no parameter has changed" in (record.reason or "")


def test_the_recorders_window_is_not_the_contenders_memory(tmp_path: Path) -> None:
    record = run_launch(null_plan(tmp_path, "none"))
    memory = record.memory
    assert memory.after_import is not None
    assert memory.after_build is not None
    assert memory.after_first_step is not None
    assert memory.steady_peak is not None
    assert memory.lifetime_peak is not None
    assert memory.after_import <= memory.after_build <= memory.after_first_step
    assert memory.steady_peak < memory.after_first_step + 1_000_000
    assert memory.steady_anonymous_peak is not None
    assert 0 < memory.steady_anonymous_peak < memory.steady_peak, "its program is a mapped file"
    assert memory.held == memory.steady_anonymous_peak
    by_phase = {one.phase: one for one in memory.phases}
    assert list(by_phase) == ["start", "import", "build", "first step", "steady", "after"]
    assert by_phase["steady"].anonymous_peak_bytes == memory.held
    for one in memory.phases:
        assert 0 <= one.anonymous_bytes < one.resident_bytes, "its program is a mapped file"
        if one.phase not in ("start", "import"):
            parts = (one.anonymous_bytes, one.shared_bytes, one.file_bytes)
            assert sum(part or 0 for part in parts) == pytest.approx(one.resident_bytes, abs=1_000_000)


def test_the_job_is_what_the_protocol_says(tmp_path: Path) -> None:
    run_launch(make_plan(tmp_path / "launch", "eigen", settings={"threads": "1", "affinity": first_core()}))
    job = json.loads((tmp_path / "launch" / "job.json").read_text())
    assert job["protocol"] == 2
    assert job["settings"] == {"threads": "1"}  # affinity is the supervisor's
    assert job["backend"]["plugin"].endswith(".so")
    assert {"task", "device", "dtype", "batch_size", "network", "optimizer", "streams", "folder"} <= set(job)


def first_core() -> str:
    return str(min(os.sched_getaffinity(0)))


def test_learning_ends_within_an_epoch_where_it_was_told_to(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "launch", "eigen", purpose="learning", learning_rate=0.005)
    steps = plan.prepared.steps_per_epoch
    most = steps + 3
    record = run_launch(
        dataclasses.replace(plan, measure=dataclasses.replace(plan.measure, most_learning_steps=most))
    )
    assert record.outcome == "ok", words(record)
    assert record.stop_reason == "max_steps"
    assert [(e.epoch, e.steps) for e in record.evaluations] == [(1, steps), (2, most)]


@pytest.mark.parametrize(
    ("most", "expected"),
    [(None, [7, 7, 7]), (3, [3]), (7, [7]), (15, [7, 7, 1]), (21, [7, 7, 7]), (99, [7, 7, 7])],
)
def test_epochs_of_a_learning_launch(most: int | None, expected: list[int]) -> None:
    stages = list(learning_stages(Measure(epochs=3, most_learning_steps=most), steps_per_epoch=7))
    assert [one.total_steps for one in stages] == expected
    assert all(one.evaluate for one in stages)
