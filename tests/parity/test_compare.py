"""The judgment itself, on proofs made by hand."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest

from timetrial.launch.flips import follow_rule
from timetrial.launch.parity import Expected, compare, compare_losses, unproven
from timetrial.launch.proof import Proof, relative_l2
from timetrial.records.model import Parity

SGD = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}
NAMES = ("a.weight", "a.bias", "b.weight")


def tensors(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    shapes = ((4, 3), (4,), (2, 4))
    return {
        name: generator.normal(size=shape).astype(np.float32)
        for name, shape in zip(NAMES, shapes, strict=True)
    }


INITIAL = tensors(0)
EXPECTED = Expected(initial=INITIAL, nodes=["a", "b"], optimizer=SGD)
GRADIENTS = [tensors(seed) for seed in range(1, 6)]


def judge_proof() -> Proof:
    followed = follow_rule(INITIAL, GRADIENTS, SGD)
    parameter = {name: tensor.astype(np.float32) for name, tensor in followed.items()}
    return Proof(
        loss=2.0,
        activation={"a": np.ones((2, 4), np.float32), "b": np.ones((2, 2), np.float32)},
        gradient=GRADIENTS[0],
        other_gradient=tensors(8),
        losses=[2.0, 1.9, 1.8, 1.7, 1.6],
        parameter=parameter,
        output=np.ones((2, 2), np.float32),
        train_losses=[2.1, 2.0, 1.9, 1.8, 1.7],
        train_parameter=tensors(9),
    )


def contender_proof() -> Proof:
    proof = copy.deepcopy(judge_proof())
    proof.step_gradients = GRADIENTS
    proof.stepwise_parameter = proof.parameter
    return proof


def judged(contender: Proof) -> Parity:
    return compare(contender, judge_proof(), EXPECTED, "judge")


def flipped() -> Proof:
    """In the third step one gradient is a little different, and everything after it follows."""
    proof = contender_proof()
    gradients = copy.deepcopy(GRADIENTS)
    gradients[2]["a.bias"] *= np.float32(1.001)
    followed = follow_rule(INITIAL, gradients, SGD)
    proof.step_gradients = gradients
    proof.parameter = {name: tensor.astype(np.float32) for name, tensor in followed.items()}
    proof.stepwise_parameter = proof.parameter
    return proof


def test_equal_proofs_pass() -> None:
    parity = judged(contender_proof())
    assert (parity.status, parity.max_error, parity.notes) == ("passed", 0.0, [])
    assert parity.losses == [2.1, 2.0, 1.9, 1.8, 1.7]


def test_a_rounded_decision_passes_with_a_note() -> None:
    proof = flipped()
    assert relative_l2(proof.parameter["a.bias"], judge_proof().parameter["a.bias"]) > 1e-5
    parity = judged(proof)
    assert (parity.status, parity.notes) == ("passed", ["flips"])
    assert [c.tensor for c in parity.comparisons if not c.passed] == ["parameter a.bias"]


def test_losses_follow_a_rounded_decision_and_only_a_little() -> None:
    proof = flipped()
    error = relative_l2(proof.parameter["a.bias"], judge_proof().parameter["a.bias"])
    proof.losses[4] *= 1 + 0.03 * error
    parity = judged(proof)
    assert (parity.status, parity.notes) == ("passed", ["flips"])
    assert {c.tensor for c in parity.comparisons if not c.passed} == {"parameter a.bias", "loss of step 5"}
    proof.losses[4] *= 1 + 0.03 * error
    assert judged(proof).tensor == "loss of step 5"


def first_loss(proof: Proof) -> None:
    proof.losses[0] *= 1 + 1e-5


def wrong_rule(proof: Proof) -> None:
    gentle = {**SGD, "momentum": 0.9001}
    followed = follow_rule(INITIAL, proof.step_gradients, gentle)
    proof.parameter = {name: tensor.astype(np.float32) for name, tensor in followed.items()}
    proof.stepwise_parameter = proof.parameter


def other_steps(proof: Proof) -> None:
    proof.stepwise_parameter = {name: tensor * 1.001 for name, tensor in proof.parameter.items()}


def no_steps(proof: Proof) -> None:
    proof.step_gradients = []


def lost_gradient(proof: Proof) -> None:
    proof.step_gradients = [{"a.weight": GRADIENTS[0]["a.weight"]}] * 5


def wrong_output(proof: Proof) -> None:
    assert proof.output is not None
    proof.output = proof.output * np.float32(1.1)


def spoil(gradients: dict[str, Any], factor: float) -> dict[str, Any]:
    return {**gradients, "b.weight": gradients["b.weight"] * np.float32(factor)}


def wrong_gradient(proof: Proof) -> None:
    proof.gradient = spoil(proof.gradient, 1.001)
    proof.other_gradient = spoil(proof.other_gradient, 1.001)


def far_off_gradient(proof: Proof) -> None:
    proof.gradient = spoil(proof.gradient, 1.02)


@pytest.mark.parametrize("batch", ["gradient", "other_gradient"])
def test_a_rounded_decision_in_one_gradient_passes_with_a_note(batch: str) -> None:
    proof = contender_proof()
    setattr(proof, batch, spoil(getattr(proof, batch), 1.001))
    parity = judged(proof)
    assert (parity.status, parity.notes) == ("passed", ["flips"])


def wrong_loss(proof: Proof) -> None:
    proof.losses[4] *= 1.0001


def far_away(proof: Proof) -> None:
    gradients = copy.deepcopy(GRADIENTS)
    gradients[2]["a.bias"] *= np.float32(2)
    followed = follow_rule(INITIAL, gradients, SGD)
    proof.step_gradients = gradients
    proof.parameter = {name: tensor.astype(np.float32) for name, tensor in followed.items()}
    proof.stepwise_parameter = proof.parameter


@pytest.mark.parametrize(
    "spoil",
    [
        wrong_rule,
        other_steps,
        no_steps,
        lost_gradient,
        wrong_output,
        wrong_gradient,
        far_off_gradient,
        wrong_loss,
        first_loss,
        far_away,
    ],
)
def test_nothing_else_is_excused_as_a_rounded_decision(spoil: Any) -> None:
    proof = flipped()
    spoil(proof)
    parity = judged(proof)
    assert parity.status == "failed"
    assert parity.notes == []
    assert parity.tensor is not None


def test_ties_excuse_later_losses_and_never_the_first() -> None:
    proof = contender_proof()
    proof.train_losses[2] *= 1.001
    assert judged(proof).notes == ["ties"]
    proof.train_losses[2] *= 1.1
    assert judged(proof).tensor == "workload: loss of step 3"
    proof = contender_proof()
    proof.train_losses[0] *= 1.00001
    parity = judged(proof)
    assert (parity.status, parity.tensor) == ("failed", "workload: loss of step 1")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("group", ["gradient", "parameter", "train_parameter", "activation"])
def test_what_is_not_finite_never_passes(group: str, value: float) -> None:
    proof = contender_proof()
    found = dict(getattr(proof, group))
    name = next(iter(found))
    found[name] = np.full_like(found[name], value)
    parity = judged(dataclasses.replace(proof, **{group: found}))
    assert parity.status == "failed"
    assert "not finite" in (parity.reason or "")


def test_missing_losses_never_pass() -> None:
    proof = contender_proof()
    proof.losses = proof.losses[:3]
    assert judged(proof).tensor == "loss of step 4"
    proof = contender_proof()
    proof.loss = None
    assert judged(proof).tensor == "loss"
    proof = contender_proof()
    proof.output = None
    assert judged(proof).tensor == "output"


def test_names_and_shapes_come_first() -> None:
    proof = contender_proof()
    proof.gradient = {name: tensor for name, tensor in proof.gradient.items() if name != "a.bias"}
    assert "a.bias: the contender has no gradient of this name" in (judged(proof).reason or "")
    proof = contender_proof()
    proof.parameter = {**proof.parameter, "c.weight": np.ones(1, np.float32)}
    assert judged(proof).tensor == "c.weight"
    proof = contender_proof()
    proof.parameter = {**proof.parameter, "a.weight": proof.parameter["a.weight"].T}
    assert judged(proof).reason == "a.weight: shape (3, 4), expected (4, 3) (parameter)"


def test_proofs_survive_the_cache(tmp_path: Any) -> None:
    proof = judge_proof()
    for name, array in proof.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", np.ascontiguousarray(array))
    read = Proof.from_folder(tmp_path)
    assert (read.loss, read.losses, read.train_losses) == (proof.loss, proof.losses, proof.train_losses)
    for group in ("activation", "gradient", "parameter", "train_parameter"):
        for name, tensor in getattr(proof, group).items():
            assert np.array_equal(getattr(read, group)[name], tensor)


def test_timed_losses() -> None:
    proof = Parity(status="passed", losses=[2.0, 1.0])
    assert compare_losses([2.0, 1.0, 0.5], proof) is None
    assert "the loss of step 2 is" in (compare_losses([2.0, 1.00002], proof) or "")
    assert compare_losses([float("nan")], proof) is not None
    assert compare_losses([1.0], unproven("nobody knows")) is None
