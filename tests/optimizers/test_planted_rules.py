"""What is often wrong in an optimizer, planted in a contender: caught in the proof, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from launching import make_plan, small_network, words

from timetrial.launch.run import run_launch
from timetrial.records.model import LaunchRecord

pytestmark = pytest.mark.attempt

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")
STEPS = {"name": "step", "every": 3, "factor": 0.5}


def prove(folder: Path, defect: str, states: str = "shown", **optimizer: Any) -> LaunchRecord:
    folder.mkdir(exist_ok=True)
    plan = make_plan(
        folder / "proof",
        PLANTED,
        network=small_network(folder),
        settings={"planted.defect": defect, "planted.states": states},
        purpose="proof",
        optimizer={"name": "sgd", "learning_rate": 0.02, **optimizer},
    )
    return run_launch(plan)


@pytest.mark.parametrize("states", ["shown", "hidden"])
def test_a_right_one_passes(tmp_path: Path, states: str) -> None:
    record = prove(tmp_path, "none", states, momentum=0.9, weight_decay=0.01, schedule=STEPS)
    assert record.outcome == "ok", words(record)


@pytest.mark.parametrize(
    ("defect", "states", "tensor"),
    [
        ("undecayed_bias", "shown", "step 2: velocity fc2.bias"),
        ("undecayed_bias", "hidden", "step 2: parameter fc2.bias"),
        ("late_rate", "shown", "step 4: parameter fc2.bias"),
        ("late_rate", "hidden", "step 4: parameter fc2.bias"),
        ("rate_in_velocity", "shown", "step 1: velocity fc2.bias"),
        ("rate_in_velocity", "hidden", "step 4: parameter fc2.bias"),
        ("velocity_lost", "hidden", "own data, step 10: parameter fc2.bias"),
    ],
)
def test_a_wrong_one_is_caught_and_named(tmp_path: Path, defect: str, states: str, tensor: str) -> None:
    """Whether its states are looked at or follow from two weights."""
    record = prove(tmp_path, defect, states, momentum=0.9, weight_decay=0.01, schedule=STEPS)
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert record.parity.tensor == tensor
    assert tensor in (record.reason or "")


def test_a_rate_inside_the_velocity_shows_even_where_the_rate_stays(tmp_path: Path) -> None:
    """Whoever says `v = m v + g` and keeps another one is told; whoever hides it computes the same steps."""
    assert prove(tmp_path / "shown", "rate_in_velocity", momentum=0.9).outcome == "wrong"
    assert prove(tmp_path / "hidden", "rate_in_velocity", "hidden", momentum=0.9).outcome == "ok"


def test_a_schedule_that_changes_after_the_proof_is_proven_all_the_same(tmp_path: Path) -> None:
    """The proof's own recipe has a rate that jumps in each step."""
    late = {"name": "step", "every": 1000, "factor": 0.5}
    record = prove(tmp_path, "late_rate", momentum=0.9, schedule=late)
    assert record.parity is not None
    assert record.parity.tensor == "stress: step 2: parameter fc2.bias"
