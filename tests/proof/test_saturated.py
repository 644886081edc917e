"""A network that has learned its batch: its loss and gradient are what rounding leaves of a probability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from native_twin import NativeTwin
from twins import Bench, Twin, questions

from timetrial.proof.expected import expected_of
from timetrial.proof.judge import judge_of
from timetrial.proof.parity import compare
from timetrial.questions.observed import Observation, look
from timetrial.records.model import Parity

STEPS = 80  # to a loss of 4e-5


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench.of("mlp", "digits28", batch_size=8)


def learn(contact: Any) -> None:
    for _ in range(STEPS):
        contact.stream("proof")
        contact.run(1)


def end(bench: Bench, contact: Any, **changed: Any) -> Parity:
    """Of one that has learned the first batch of the proof, with which the judged steps begin."""
    learn(contact)
    observations = questions("train", contact, bench.prepared, 8).end(STEPS)
    assert observations[0].loss is not None
    assert observations[0].loss < 1e-4
    observations[0] = replace(observations[0], loss=observations[0].loss * changed.pop("loss", 1))
    expected = replace(expected_of(bench.prepared), **changed)
    return compare(observations, judge_of(bench.prepared), expected)


@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn"])
def test_a_loss_of_nothing_but_rounding_is_judged_as_that(bench: Bench, backend: str) -> None:
    contact = NativeTwin(bench.prepared, "train", backend)
    parity = end(bench, contact)
    assert parity.status == "passed", parity.reason


def test_no_other_loss_is(bench: Bench) -> None:
    """By half a last place of a probability, as Keras was with AlexNet."""
    half = 1 + 3e-8 / 4e-5
    assert end(bench, Twin(bench.prepared, "train"), loss=half).status == "passed"
    parity = end(bench, Twin(bench.prepared, "train"), loss=half, is_logarithm=False)
    assert parity.tensor == f"step {STEPS + 1}: loss"


def gradient_of(contact: Any, factor: float = 1) -> Observation:
    learn(contact)
    contact.stream("proof")
    before = look(contact)
    loss = contact.gradient()
    gradient = {name: factor * values for name, values in contact.dump("gradient").items()}
    return Observation("learned", "proof", 0, before, step=STEPS, loss=loss, gradient=gradient)


@pytest.mark.parametrize(("factor", "status"), [(1, "passed"), (1.05, "failed"), (0, "failed")])
def test_its_gradient_too(bench: Bench, factor: float, status: str) -> None:
    seen = gradient_of(NativeTwin(bench.prepared, "train", "eigen"), factor)
    parity = compare([seen], judge_of(bench.prepared), expected_of(bench.prepared))
    assert parity.status == status, parity.reason


def test_no_other_gradient_is(bench: Bench) -> None:
    contact = NativeTwin(bench.prepared, "train", "eigen")
    strict = replace(expected_of(bench.prepared), is_logarithm=False)
    assert compare([gradient_of(contact)], judge_of(bench.prepared), strict).status == "failed"


@np.errstate(all="ignore")
@pytest.mark.parametrize("defect", ["doubled_rate", "dampened"])
def test_what_is_wrong_is_wrong_there_too(bench: Bench, defect: str) -> None:
    assert end(bench, Twin(bench.prepared, "train", defect=defect)).status == "failed"


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_loss_that_is_off_by_a_tenth_is_wrong(bench: Bench, factor: float) -> None:
    parity = end(bench, NativeTwin(bench.prepared, "train", "eigen"), loss=factor)
    assert parity.tensor == f"step {STEPS + 1}: loss"
