"""A profile launch: plain and profiled steps in turns, and what a contender may not answer."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, small_network, words

from timetrial.analysis.step_times import step_times_of
from timetrial.analysis.steps import steps_of
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.launch.decisions import MAX_PROFILED_STEPS, PROFILE_ROUNDS, Progress, profiled_steps
from timetrial.launch.profile import LayerTimes
from timetrial.launch.segments import SampleFiles
from timetrial.processes.events import ProfileDone
from timetrial.processes.outcome import LaunchError
from timetrial.records import store

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


def test_layers_and_plain_steps_of_one_launch(tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    # Dozens of steps of each kind: on a busy machine most of them are disturbed, never all.
    longer = dataclasses.replace(SHORT, steady_ns=1_000 * MS)
    plan = make_plan(folder, "reference", network=small_network(tmp_path), purpose="profile", measure=longer)
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    named = {(layer.node, layer.direction) for layer in record.profiled_layers}
    assert {("conv1", "forward"), ("fc2", "backward"), ("conv2", "update"), ("loss", "loss")} <= named
    times = store.read_layer_times(folder, store.read_launch(folder))
    assert times.shape == (len(record.profiled_layers), record.profiled_steps)
    kinds = [segment.kind for segment in record.segments]
    assert kinds.count("steady") >= PROFILE_ROUNDS + 1
    steps = steps_of(record, store.read_stamps(folder), store.read_losses(folder))
    plain = step_times_of(steps, "profile")
    assert plain is not None
    assert 1 / 3 < times.sum(axis=0).min() / plain.durations_ns.min() < 3


def test_a_contender_that_does_not_time_its_layers_is_unavailable(tmp_path: Path) -> None:
    network = small_network(tmp_path)
    for backend, name in (("null", "null"), (PLANTED, "planted")):
        record = run_launch(make_plan(tmp_path / name, backend, network=network, purpose="profile"))
        assert record.outcome == "unavailable", words(record)
        assert record.reason == f"{name} does not time its layers"


def test_losses_behind_profiled_steps_are_not_held_against_the_proof(tmp_path: Path) -> None:
    """So short that only three plain steps precede the first profiled one."""
    network = small_network(tmp_path)
    proof = run_launch(make_plan(tmp_path / "proof", "reference", network=network, purpose="proof"))
    assert proof.parity is not None
    assert len(proof.parity.losses) > 3
    hasty = dataclasses.replace(SHORT, warmup_ns=1, steady_ns=PROFILE_ROUNDS + 1)
    plan = make_plan(
        tmp_path / "launch",
        "reference",
        network=network,
        purpose="profile",
        measure=hasty,
        proof=proof.parity,
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    losses = proof.parity.losses
    spoiled = proof.parity.model_copy(update={"losses": [*losses[:3], *(2 * loss for loss in losses[3:])]})
    record = run_launch(dataclasses.replace(plan, folder=tmp_path / "spoiled", proof=spoiled))
    assert record.outcome == "ok", words(record)
    spoiled = proof.parity.model_copy(update={"losses": [2 * loss for loss in losses]})
    record = run_launch(dataclasses.replace(plan, folder=tmp_path / "other", proof=spoiled))
    assert record.outcome == "wrong", "the steps before are compared"


def test_first_losses_end(tmp_path: Path) -> None:
    files = SampleFiles(tmp_path)
    files.append(np.zeros(3, np.uint64), np.array([1.0, 2.0]))
    files.first_losses_end()
    files.append(np.zeros(3, np.uint64), np.array([3.0, 4.0]))
    files.close()
    assert files.first_losses == [1.0, 2.0]
    assert files.losses == 4


def test_as_many_profiled_steps_as_plain_ones_within_reason() -> None:
    assert profiled_steps(Progress(steps=7)) == 7
    assert profiled_steps(Progress(steps=10**6)) == MAX_PROFILED_STEPS


def answer(steps: int, *rows: tuple[str, str, list[int]]) -> ProfileDone:
    layers = [{"node": node, "direction": direction, "ns": ns} for node, direction, ns in rows]
    line = json.dumps({"event": "done", "command": "profile", "steps": steps, "layers": layers})
    return ProfileDone.model_validate_json(line)


def test_rounds_are_joined(tmp_path: Path) -> None:
    times = LayerTimes()
    times.add(answer(2, ("a", "forward", [1, 2]), ("a", "update", [3, 4])), 2)
    times.add(answer(1, ("a", "update", [6]), ("a", "forward", [5])), 1)
    assert times.steps == 3
    times.write(tmp_path)
    record = _record(times)
    assert store.read_layer_times(tmp_path, record).tolist() == [[1, 2, 5], [3, 4, 6]]
    short = record.model_copy(update={"profiled_steps": 2})
    with pytest.raises(InputError, match="6 times, expected 2 steps of 2 layers"):
        store.read_layer_times(tmp_path, short)


def _record(times: LayerTimes) -> Any:
    return store.LaunchRecord(
        id="1", case="1", purpose="profile", seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=1.0, profiled_steps=times.steps, profiled_layers=times.layers(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "forward", [1, 2, 3])], "a forward has 3 times in 2 steps"),
        ([("a", "forward", [1, 2]), ("a", "forward", [1, 2])], "a layer twice in a direction"),
        ([("b", "loss", [1, 2])], "not in every step: a forward, b loss"),
    ],
)
def test_an_answer_that_is_none(rows: Any, message: str) -> None:
    times = LayerTimes()
    times.add(answer(1, ("a", "forward", [1])), 1)
    with pytest.raises(LaunchError, match=message):
        times.add(answer(2, *rows), 2)
