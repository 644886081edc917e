"""A bias whose samples pull both ways is measured by what they add, as is the layer that the loss reads; and
nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stages import IMAGES, PLAIN, Stage

from timetrial.agreement.sizes import norm
from timetrial.proof.cancelling import may_cancel, nothing_else, sizes_of_terms
from timetrial.questions.observed import Tensors, rows_of
from timetrial.records.model import Comparison

BIAS = "fc2.bias"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Of whose last bias little is left."""
    found = Stage(tmp_path, PLAIN)
    own, terms = sizes(found)
    assert terms > 1.5 * own, "its samples cancel"
    return found


def sizes(stage: Stage, name: str = BIAS) -> tuple[float, float]:
    """Of the gradient, and of its terms."""
    gradient = stage.answer().gradient
    terms = sizes_of_terms(stage.judge, stage.parameters, stage.batch, frozenset({name}))
    return norm(gradient[name]), terms[name]


def off(stage: Stage, name: str, by: float) -> Tensors:
    """The judge's gradients, one of them off by so much in all."""
    gradient = dict(stage.answer().gradient)
    wrong = np.ones(gradient[name].shape)
    return gradient | {name: gradient[name] + by * wrong / norm(wrong)}


def test_the_terms_are_those_of_single_samples(stage: Stage) -> None:
    single = stage.judge.sized(1)
    images = [rows_of(stage.batch, [number]) for number in range(IMAGES)]
    each = [single.gradient(stage.parameters, image).gradient[BIAS] for image in images]
    assert sizes(stage)[1] == pytest.approx(norm(np.mean(np.abs(each), axis=0)))


@pytest.mark.parametrize(("share", "status"), [(0.9, "passed"), (1.2, "failed")])
def test_a_bias_is_measured_by_its_terms(stage: Stage, share: float, status: str) -> None:
    own, terms = sizes(stage)
    assert share * terms > own
    parity = stage.judged(off(stage, BIAS, 2e-5 * share * terms))
    assert (parity.status, parity.turned) == (status, []), parity.reason
    assert parity.tensor == f"gradient {BIAS}"


@pytest.mark.parametrize(("share", "status"), [(0.9, "passed"), (1.2, "failed")])
def test_the_weight_that_makes_the_scores_is_too(stage: Stage, share: float, status: str) -> None:
    own, terms = sizes(stage, "fc2.weight")
    assert share * terms > own, "its samples cancel"
    weight = off(stage, "fc2.weight", 2e-5 * share * terms)
    # In the last layer or in one before it: only what the loss reads.
    assert stage.judged(weight).status == "failed"
    stage.expected = replace(stage.expected, output="fc2")
    assert stage.judged(weight).status == status


@pytest.mark.attempt
def test_another_weight_is_not(stage: Stage) -> None:
    stage.expected = replace(stage.expected, output="fc2")
    _, terms = sizes(stage)
    gradient = stage.answer().gradient
    weight = off(stage, "fc1.weight", 3e-5 * norm(gradient["fc1.weight"]))
    assert stage.judged(weight).status == "failed"
    both = weight | {BIAS: off(stage, BIAS, 2e-5 * 0.9 * terms)[BIAS]}
    assert stage.judged(both).status == "failed"


def test_nothing_else_failed() -> None:
    initial = {"a.weight": np.zeros((2, 2)), "a.bias": np.zeros(2), "b.weight": np.zeros((2, 2))}
    cancelling = may_cancel(initial, "b")
    assert cancelling == {"a.bias", "b.weight"}

    def one(tensor: str, *, passed: bool = False) -> Comparison:
        return Comparison(tensor=tensor, measure="relative", error=1.0, tolerance=1.0, passed=passed)

    assert nothing_else([one("step 1: velocity a.bias"), one("loss", passed=True)], cancelling)
    assert not nothing_else([one("step 1: velocity a.bias"), one("gradient a.weight")], cancelling)
    assert not nothing_else([one("step 1: velocity a.bias"), one("loss")], cancelling)
    assert not nothing_else([one("gradient a.bias", passed=True)], cancelling)
