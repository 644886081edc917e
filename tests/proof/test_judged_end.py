"""Behind its timed part every launch takes steps that are judged, through the verb that was timed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, small_network, words

from timetrial.launch import run_launch
from timetrial.launch.divergence import Divergence, check_finite
from timetrial.observing.accounts import remembers
from timetrial.processes.outcome import LaunchError
from timetrial.questions.observed import Look, Observation
from timetrial.records.model import Segment, SegmentKind

STEPS = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=60)
PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "task", "tensor"),
    [
        ("skipped_later", "train", "velocity"),
        ("bf16_later", "train", "step "),
        ("constant", "forward", "after 1 steps, timed step on proof: output"),
        ("bf16_later", "forward", "timed step on proof: output"),
    ],
)
def test_what_goes_wrong_while_timed_is_seen(tmp_path: Path, defect: str, task: str, tensor: str) -> None:
    plan = make_plan(
        tmp_path / "launch", PLANTED, network=small_network(tmp_path), measure=STEPS, task=task,
        settings={"planted.defect": defect},
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "wrong", words(record)
    assert record.end is not None
    assert tensor in (record.end.tensor or "")
    assert f"behind the timed part: {record.end.tensor}" in (record.reason or "")
    assert not (tmp_path / "launch" / "dumps").exists()


@pytest.mark.parametrize("task", ["train", "gradient", "forward"])
@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn", "reference", "pytorch", PLANTED])
def test_what_is_right_passes(tmp_path: Path, backend: str, task: str) -> None:
    if backend == "pytorch":
        pytest.importorskip("torch")
    record = run_launch(make_plan(tmp_path / "launch", backend, network=small_network(tmp_path), task=task))
    assert record.outcome == "ok", words(record)
    assert record.end is not None
    assert record.end.status == "passed"
    assert record.end.comparisons
    assert not any("may remember" in one for one in record.warnings)
    assert record.segments[-1].kind == "judged"


@pytest.mark.attempt
def test_what_is_computed_once_and_then_remembered_is_said(tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path / "launch", PLANTED, network=small_network(tmp_path),
        measure=dataclasses.replace(STEPS, max_steps=120),
        momentum=0.1,  # passes of 20 steps
        settings={"planted.defect": "remembers"},
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert any("may remember results" in one for one in record.warnings), record.warnings


def test_how_much_more_is_said() -> None:
    def said(judged: list[tuple[int, float]], timed_ms: float, first_ms: float = 85.0) -> str | None:
        ends = [segment("judged", steps, ms) for steps, ms in judged]
        first = segment("turn", 4, 4 * 100.0)  # nobody knows them yet
        timed_ns = np.full(20, int(timed_ms * MS))
        first_ns = np.array([500, *[first_ms] * 9]) * MS
        return remembers([first, *[segment("turn", 4, 4 * timed_ms)] * 4, *ends], first_ns, timed_ns)

    assert said([(1, 30.0), (1, 79.0)], 10.0) is None  # the smallest counts: one may have compiled
    assert said([(1, 81.0), (5, 390.0)], 10.0) is None  # 78 ms each
    assert said([(1, 81.0), (5, 410.0)], 10.0) == (
        "a step on a batch that it had never seen took 81 ms of CPU time, those that were timed 10 ms: "
        "it may remember results of steps that come again"
    )
    assert said([(1, 81.0)], 10.0, first_ms=75.0) is None  # new steps were no slower in the first pass
    assert said([(1, 0.9)], 0.01) is None  # all overhead
    assert said([], 10.0) is None
    few, ns = [segment("turn", 19, 1.0), segment("judged", 1, 100.0)], np.full(19, MS)
    assert remembers(few, 100 * ns, ns) is None  # too few to tell


def segment(kind: SegmentKind, steps: int, ms: float) -> Segment:
    return Segment(
        kind=kind, steps=steps, first_stamp=0, stamps=0, first_loss=0, losses=0, cpu_ns=int(ms * MS)
    )


def test_a_null_contender_shows_nothing(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "null"))
    assert record.outcome == "ok", words(record)
    assert record.end is None


@pytest.mark.parametrize("loss", [float("inf"), float("nan")])
def test_training_that_has_diverged_is_not_called_wrong(loss: float) -> None:
    weights = Look({"fc.weight": np.ones(3, np.float32)})
    seen = Observation("step 61", "proof", 0, weights, loss=loss, after=weights)
    with pytest.raises(LaunchError, match="step 61: the loss is") as raised:
        check_finite([seen])
    assert raised.value.outcome == "nan"
    check_finite([dataclasses.replace(seen, loss=1.0)])
    spoiled = Look({"fc.weight": np.array([1.0, np.inf], np.float32)})
    with pytest.raises(LaunchError, match=r"fc\.weight is not finite"):
        check_finite([dataclasses.replace(seen, loss=1.0, after=spoiled)])


def test_training_that_is_about_to_diverge_is_not_called_wrong_either() -> None:
    weights = Look({"fc.weight": np.ones(3, np.float32)})
    early = Observation("step 60", "proof", 0, weights, loss=2.0, after=weights)
    seen = dataclasses.replace(early, name="step 61", loss=2400.0)
    with pytest.raises(LaunchError, match=r"step 61: the loss is 2.4e\+03, and was 2.3 at first") as raised:
        Divergence([early, seen], [2.3]).check(seen)
    assert raised.value.outcome == "nan"
    Divergence([early, seen], [2.3]).check(early)  # what is wrong before that is wrong
    Divergence([early, seen], [2.5]).check(seen)
    Divergence([early, seen], []).check(seen)
    spoiled = dataclasses.replace(early, before=Look({"fc.weight": np.array([1.0, np.inf], np.float32)}))
    with pytest.raises(LaunchError, match="parameters are not finite: training has diverged"):
        Divergence([spoiled], [2.5]).check(spoiled)
