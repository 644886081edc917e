"""Passes: the same steps for everyone, and who only says so is found out."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, words
from numpy.typing import NDArray

from timetrial.agreement.passes import MOST_STEPS, PassCheck, can_reset, check_resets, pass_steps
from timetrial.analysis.steps import steps_of
from timetrial.launch import run_launch
from timetrial.processes.outcome import LaunchError
from timetrial.records import store
from timetrial.records.model import LaunchRecord

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")
# Counted in steps, however slow the machine is at the moment.
THREE_PASSES = dataclasses.replace(
    SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=3 * MOST_STEPS + 20
)


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


def segment(pieces: list[list[float]]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Stamps and losses of a segment: pieces of passes, a reset between them."""
    numbers = [0]
    for number, piece in enumerate(pieces):
        numbers += [6] * (number > 0) + [1] * len(piece)
    times = np.arange(len(numbers), dtype=np.uint64) * np.uint64(1000)
    stamps = times << np.uint64(8) | np.array(numbers, np.uint64)
    return stamps, np.array([loss for piece in pieces for loss in piece])


PASS = [2.0, 1.5, 1.2, 1.0, 0.9, 0.8, 0.7]


def test_a_pass_may_span_segments() -> None:
    check = PassCheck(7, proven=True)
    check.add(*segment([PASS[:3]]))
    check.add(*segment([PASS[3:], PASS, PASS[:1]]))
    check.add(*segment([PASS[1:]]))
    check.add(*segment([[], PASS, PASS[:2]]))
    with pytest.raises(LaunchError, match="after 2 steps of a pass, not 7"):
        check.add(*segment([[], PASS]))


def test_a_reset_that_is_missing_is_missed() -> None:
    check = PassCheck(7, proven=True)
    with pytest.raises(LaunchError, match="took 8 steps without a reset, not 7") as caught:
        check.add(*segment([[*PASS, 0.6]]))
    assert caught.value.outcome == "wrong"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("step", "factor", "is_seen"),
    [
        (0, 1 + 4e-6, False),  # summed in another order
        (0, 1 + 6e-6, True),
        (1, 1 + 1e-5, False),  # which the next steps carry on
        (1, 1.001, True),
        (4, 1.01, True),
        (5, 2.0, False),  # only the beginning of a pass is looked at
    ],
)
def test_each_pass_begins_with_the_first_ones_losses(step: int, factor: float, is_seen: bool) -> None:
    other = list(PASS)
    other[step] *= factor
    check = PassCheck(7, proven=True)
    check.add(*segment([PASS, PASS]))
    if is_seen:
        with pytest.raises(
            LaunchError, match=rf"after a reset the loss of step {step + 1} is .* initial state"
        ):
            check.add(*segment([[], other]))
    else:
        check.add(*segment([[], other]))


@pytest.mark.attempt
def test_a_loss_that_is_gone_is_not_the_same() -> None:
    check = PassCheck(7, proven=True)
    with pytest.raises(LaunchError, match="the loss of step 1 is nan"):
        check.add(*segment([PASS, [math.nan, *PASS[1:]]]))


def test_what_was_never_proven_is_warned_of_only() -> None:
    check = PassCheck(7, proven=False)
    check.add(*segment([PASS, [2.1, *PASS[1:]], PASS]))
    assert check.warning is not None
    assert "the loss of step 1 is 2.1" in check.warning


def test_a_command_resets_and_profiled_steps_count() -> None:
    check = PassCheck(7, proven=True)
    check.add(*segment([PASS[:3]]))
    check.restarted()
    check.add(*segment([PASS[:4]]))
    check.skip(5)  # steps 5, 6, 7, then 1, 2
    check.add(*segment([PASS[2:], PASS]))
    check.skip(2)
    with pytest.raises(LaunchError, match="the loss of step 3"):
        check.add(*segment([[9.0]]))


@pytest.mark.parametrize(
    ("momentum", "epoch", "steps"),
    [(0.9, 1000, 100), (0.9, 22, 22), (0.0, 1000, 100), (0.5, 1000, 66), (0.1, 1000, 20), (1e-30, 1000, 1),
     (0.99, 0, 100)],
)  # fmt: skip
def test_how_long_a_pass_is(momentum: float, epoch: int, steps: int) -> None:
    assert pass_steps({"name": "sgd", "momentum": momentum}, epoch) == steps
    if 0 < momentum < 1 and steps > 1:
        assert 1e-17 * momentum**steps > np.finfo(np.float32).smallest_normal


@pytest.mark.attempt
def test_work_in_resets_is_seen() -> None:
    def said(*resets_ms: float, steps_ms: float = 10.0, proven: bool = True) -> str | None:
        return check_resets(np.array([int(ms * MS) for ms in resets_ms]), steps_ms * MS, proven=proven)

    assert said() is None
    assert said(1.3, 1.3, 1.3, 19.0) is None  # the longest may have waited for a processor
    assert "outside the clock" in str(said(26.0))  # not for as long as that, be it the only one
    assert said(2.0, 2.0, 2.0, 2.0) == (
        "its resets took 6 ms and its steps 10 ms: work in a reset is outside the clock"
    )
    assert said(0.4, 0.4, 0.4, steps_ms=0.01) is None  # too short to say anything about
    with pytest.raises(LaunchError, match="outside the clock"):
        said(71.0)
    with pytest.raises(LaunchError, match="outside the clock") as raised:
        said(30.0, 30.0, 30.0)
    assert raised.value.outcome == "wrong"
    assert "outside the clock" in str(said(30.0, 30.0, 30.0, proven=False))


def test_who_has_nothing_to_reset_is_not_reset() -> None:
    assert can_reset(["profiles"])
    assert not can_reset(["reads_no_data", "unprovable"])
    assert can_reset(["reads_no_data", "unprovable", "resets"])


def steps_in(record: LaunchRecord, folder: Path) -> list[list[float]]:
    """The losses of each pass; without the steps behind the timed ones, which are judged."""
    steps = steps_of(record, store.read_stamps(folder), store.read_losses(folder))
    timed = steps.kind != "judged"
    return [list(one) for one in np.split(steps.loss[timed], np.flatnonzero(steps.first_in_pass[timed]))]


@pytest.mark.parametrize("backend", ["eigen", PLANTED])
def test_every_pass_is_the_same_steps(tmp_path: Path, backend: str) -> None:
    record = run_launch(make_plan(tmp_path / "launch", backend, measure=THREE_PASSES, environment=ONE_THREAD))
    assert record.outcome == "ok", words(record)
    assert record.passes is not None
    length = record.passes.steps
    assert length is not None
    assert record.passes.resets == sum(one.resets for one in record.segments) > 0
    assert record.passes.reset_ns > 0
    passes = steps_in(record, tmp_path / "launch")
    assert len(passes) == record.passes.resets + 1
    assert {len(one) for one in passes[:-1]} == {length}
    for one in passes[1:]:
        np.testing.assert_allclose(one, passes[0][: len(one)], rtol=1e-4)
    assert len(set(passes[0])) == length  # and no two steps of a pass are


def test_no_step_behind_a_reset_counts(tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    record = run_launch(make_plan(folder, "eigen", measure=THREE_PASSES))
    stamps = store.read_stamps(folder)
    steps = steps_of(record, stamps, store.read_losses(folder))
    numbers = stamps & np.uint64(0xFF)
    times = (stamps >> np.uint64(8)).astype(np.int64)
    for at in np.flatnonzero(numbers == 6):
        behind = np.flatnonzero(steps.end_ns == times[at + 1])[0]
        assert steps.duration_ns[behind] == times[at + 1] - times[at]
        assert steps.follows_break[behind]
    whole = sum(int(one.max() - one.min()) for one in np.split(times, np.flatnonzero(numbers == 0)[1:]))
    assert record.passes is not None
    assert int(steps.duration_ns.sum()) + record.passes.reset_ns == whole


def run_planted(folder: Path, defect: str) -> LaunchRecord:
    settings = {"planted.defect": defect}
    return run_launch(
        make_plan(folder / "launch", PLANTED, settings=settings, measure=THREE_PASSES, environment=ONE_THREAD)
    )


@pytest.mark.attempt
def test_a_reset_that_does_nothing_is_wrong(tmp_path: Path) -> None:
    record = run_planted(tmp_path, "no_reset")
    assert record.outcome == "wrong"
    assert "after a reset the loss of step 1" in str(record.reason)


@pytest.mark.attempt
def test_a_reset_that_keeps_the_velocities_is_wrong(tmp_path: Path) -> None:
    record = run_planted(tmp_path, "kept_velocity")
    assert record.outcome == "wrong"
    assert "after a reset the loss of step 2" in str(record.reason)


def test_null_has_nothing_to_repeat(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "null"))
    assert record.passes is not None
    assert (record.passes.steps, record.passes.resets) == (None, 0)


@pytest.mark.parametrize("purpose", ["profile", "learning"])
def test_other_launches(tmp_path: Path, purpose: str) -> None:
    measure = dataclasses.replace(SHORT, warmup_ns=80 * MS, steady_ns=200 * MS)
    record = run_launch(make_plan(tmp_path / "launch", "eigen", purpose=purpose, measure=measure))
    assert record.outcome == "ok", words(record)
    assert (record.passes is None) is (purpose == "learning")  # which has a recipe to follow to its end
    if purpose == "learning":
        assert not any(one.resets for one in record.segments)
