"""A bias whose samples pull both ways is measured by what they add, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_flips import Stage

from timetrial.agreement.sizes import norm
from timetrial.proof.cancelling import only_biases, sizes_of_terms
from timetrial.proof.observed import Tensors
from timetrial.records.model import Comparison

BIAS = "fc2.bias"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Of whose last bias little is left."""
    found = Stage(tmp_path, 2e-3)
    own, terms = sizes(found)
    assert terms > 1.5 * own, "its samples cancel"
    return found


def sizes(stage: Stage) -> tuple[float, float]:
    """Of the gradient, and of its terms."""
    gradient = stage.judge.gradient(stage.parameters, stage.batch).gradient
    terms = sizes_of_terms(stage.judge, stage.parameters, stage.batch, stage.parameters)
    return norm(gradient[BIAS]), terms[BIAS]


def off(stage: Stage, name: str, by: float) -> Tensors:
    """The judge's gradients, one of them off by so much in all."""
    gradient = dict(stage.judge.gradient(stage.parameters, stage.batch).gradient)
    wrong = np.ones(gradient[name].shape)
    return gradient | {name: gradient[name] + by * wrong / norm(wrong)}


def test_the_terms_are_those_of_single_samples(stage: Stage) -> None:
    witness = stage.judge.witness()
    witness.load(stage.parameters)
    each = [witness.gradient(stage.image(number), {}).gradient[BIAS] for number in range(len(stage.images))]
    assert sizes(stage)[1] == pytest.approx(norm(np.mean(np.abs(each), axis=0)))
    assert set(sizes_of_terms(stage.judge, stage.parameters, stage.batch, stage.parameters)) == {
        name for name in stage.parameters if name.endswith(".bias")
    }


@pytest.mark.parametrize(("share", "status"), [(0.9, "passed"), (1.2, "failed")])
def test_a_bias_is_measured_by_its_terms(stage: Stage, share: float, status: str) -> None:
    own, terms = sizes(stage)
    assert share * terms > own
    parity = stage.judged(off(stage, BIAS, 2e-5 * share * terms))
    assert (parity.status, parity.turned) == (status, []), parity.reason
    assert parity.tensor == f"gradient {BIAS}"


@pytest.mark.attempt
def test_a_weight_is_not(stage: Stage) -> None:
    _, terms = sizes(stage)
    gradient = stage.judge.gradient(stage.parameters, stage.batch).gradient
    weight = off(stage, "fc2.weight", 3e-5 * norm(gradient["fc2.weight"]))
    assert stage.judged(weight).status == "failed"
    both = weight | {BIAS: off(stage, BIAS, 2e-5 * 0.9 * terms)[BIAS]}
    assert stage.judged(both).status == "failed"


def test_only_biases() -> None:
    initial = {"a.weight": np.zeros((2, 2)), "a.bias": np.zeros(2)}

    def one(tensor: str, *, passed: bool = False) -> Comparison:
        return Comparison(tensor=tensor, measure="relative", error=1.0, tolerance=1.0, passed=passed)

    assert only_biases([one("step 1: velocity a.bias"), one("loss", passed=True)], initial)
    assert not only_biases([one("step 1: velocity a.bias"), one("gradient a.weight")], initial)
    assert not only_biases([one("step 1: velocity a.bias"), one("loss")], initial)
    assert not only_biases([one("gradient a.bias", passed=True)], initial)
