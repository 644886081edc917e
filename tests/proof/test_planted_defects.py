"""The proof bites: each planted defect is caught, and named by tensor and size of error."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from launching import make_plan, small_network, words

from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord

pytestmark = pytest.mark.attempt

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


def prove(folder: Path, defect: str, dataset: str = "synthetic") -> LaunchRecord:
    return run_launch(
        make_plan(
            folder / "proof",
            PLANTED,
            network=small_network(folder),
            dataset=dataset,
            settings={"planted.defect": defect},
            purpose="proof",
        )
    )


def test_a_right_framework_passes(tmp_path: Path) -> None:
    record = prove(tmp_path, "none")
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    assert record.parity.notes == []
    assert record.parity.max_error is not None
    assert record.parity.max_error < 1e-4  # of a change, which a weight's last place limits
    assert len(record.parity.losses) == 5
    assert all(comparison.passed for comparison in record.parity.comparisons)


@pytest.mark.parametrize(
    ("defect", "tensor", "low", "said"),
    [
        ("wrong_stride", "activation conv2", None, "shape (16, 6, 10, 6), expected (16, 6, 5, 12)"),
        ("swapped_padding", "activation conv1", None, "shape (16, 4, 28, 24), expected (16, 4, 24, 28)"),
        ("transposed_weight", "fc1.weight", None, "shape (360, 12), expected (12, 360)"),
        ("transposed_square", "activation square", 0.1, "relative L2 error"),
        ("shifted_target", "loss", 1e-3, "relative error"),
        ("missing_bias", "gradient conv1.bias", 0.99, "the gradient of conv1.bias is 0"),
        ("forgotten_mean", "gradient fc2.bias", 14.9, "every gradient is 16 times the judge's"),
        (
            "zero_gradient_through_pool",
            "gradient conv1.bias",
            0.99,
            "the gradient of conv1.bias, conv1.weight is 0",
        ),
        ("no_update", "step 1: velocity fc2.bias", 0.99, "no parameter has changed"),
        ("evaluation_mode", "gradient fc2.bias", 0.99, "every gradient is 0"),
        ("reduced_precision", "activation conv1", 1e-4, "tolerance 2.1e-06"),
        ("forgotten_momentum", "step 2: velocity fc2.bias", 0.1, "relative L2 error"),
        ("no_reset", "own data, step 1: initial value conv1.weight", 1e-4, "relative L2 error"),
        ("stale_evaluation", "evaluation: output", 1e-3, "relative L2 error"),
        ("ignored_bias:fc1", "step 2: activation fc1", 1e-3, "relative L2 error"),
    ],
)
def test_a_defect_is_caught_and_named(
    tmp_path: Path, defect: str, tensor: str, low: float | None, said: str
) -> None:
    record = prove(tmp_path, defect)
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert record.parity.status == "failed"
    assert record.parity.tensor == tensor
    assert said in (record.reason or "")
    assert tensor in (record.reason or "")
    if low is not None:
        assert record.parity.max_error is not None
        assert record.parity.max_error > low


@pytest.mark.parametrize(
    ("defect", "deterministic"), [("none", True), ("chance", False), ("gradient_leaves_a_trace", True)]
)
def test_two_runs_are_compared_bit_by_bit(tmp_path: Path, defect: str, deterministic: bool) -> None:
    record = prove(tmp_path, defect)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.deterministic is deterministic


@pytest.mark.parametrize("backend", ["eigen", pytest.param("pytorch", marks=pytest.mark.full)])
def test_real_contenders_repeat_their_bits(tmp_path: Path, backend: str) -> None:
    if backend == "pytorch":
        pytest.importorskip("torch")
    settings = {"threads": str(len(os.sched_getaffinity(0)))}
    record = run_launch(make_plan(tmp_path / "proof", backend, settings=settings, purpose="proof"))
    assert record.parity is not None
    assert record.parity.deterministic is True


def test_a_zero_gradient_through_pooling_is_seen_by_proof_and_end(tmp_path: Path) -> None:
    """The bug of a real framework: the first loss is right and the loss falls; gradients give it away."""
    parity = prove(tmp_path, "zero_gradient_through_pool").parity
    assert parity is not None
    loss = next(comparison for comparison in parity.comparisons if comparison.tensor == "loss")
    assert loss.passed
    learning = run_launch(
        make_plan(
            tmp_path / "learning",
            PLANTED,
            network=small_network(tmp_path),
            settings={"planted.defect": "zero_gradient_through_pool"},
            purpose="learning",
        )
    )
    assert learning.evaluations[-1].loss < learning.evaluations[0].loss
    assert learning.outcome == "wrong"
    assert "conv1.weight, conv1.bias did not change" in (learning.reason or "")


def test_a_slope_of_one_at_zero_is_right_too(tmp_path: Path) -> None:
    """Real images have blank corners, where a ReLU's input is exactly 0 while biases are: a convention, the
    same in all layers, which the proof notes."""
    pytest.importorskip("sklearn")
    record = prove(tmp_path, "relu_at_zero", dataset="digits28")
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert all(comparison.passed for comparison in record.parity.comparisons)
    assert record.parity.notes == ["ties"]
    assert record.parity.turned[0].endswith("the convention first-one at ties")


def test_nothing_of_a_proof_is_left(tmp_path: Path) -> None:
    assert prove(tmp_path, "none").outcome == "ok"
    folder = tmp_path / "proof"
    assert not [name for name in ("dumps", "stress", "judge") if (folder / name).exists()]


def test_the_job_does_not_say_what_it_is_for(tmp_path: Path) -> None:
    """What is proven is what is timed: the same job, but for its name and folder."""
    jobs = []
    for purpose in ("proof", "speed"):
        folder = tmp_path / purpose
        plan = make_plan(folder, "eigen", network=small_network(tmp_path), purpose=purpose)
        assert run_launch(plan).outcome == "ok"
        job = json.loads((folder / "job.json").read_text())
        assert job.pop("folder") == str(folder)
        assert job.pop("launch") == purpose
        jobs.append(job)
    assert jobs[0] == jobs[1]
    assert "purpose" not in jobs[0]
