"""The judgment's form: names, shapes, what is not finite, and verdicts put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.update import Rule, Walk
from timetrial.proof.expected import Expected
from timetrial.proof.judge import Answer, Ties, Witness
from timetrial.proof.parity import compare, compare_losses, merged, unproven
from timetrial.questions.observed import Batches, Look, Observation, Plain, Tensors
from timetrial.records.model import Parity

SGD = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}
SHAPES = {"a.weight": (4, 3), "a.bias": (4,), "b.weight": (2, 4)}


def tensors(seed: int) -> Tensors:
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


INITIAL = tensors(0)
GRADIENT = {name: values.astype(np.float64) for name, values in tensors(1).items()}


class OneAnswer:
    """Says the same of every batch."""

    name = "judge"
    loss = 2.0

    def gradient(self, parameters: Tensors, batch: Tensors, *, activations: bool = False) -> Answer:
        return Answer(self.loss, GRADIENT, {"a": np.ones((2, 4))})

    def output(self, parameters: Tensors, batch: Tensors) -> np.ndarray[Any, Any]:
        return np.ones((2, 2))

    def witness(self, ties: Ties = "first", images: int = 1) -> Witness:
        return NothingClose()


class NothingClose:
    nodes = ()

    def load(self, parameters: Tensors) -> None: ...

    def gradient(self, image: Tensors, nudges: Tensors, *, activations: bool = True) -> Answer:
        return Answer(2.0, GRADIENT, {})


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    for name, array in (("images", np.ones((2, 3))), ("labels", np.zeros(2)), ("order", np.array([[0, 1]]))):
        np.save(tmp_path / f"{name}.npy", array)
    tensors = {name: str(tmp_path / f"{name}.npy") for name in ("images", "labels")}
    files: dict[str, Any] = {"tensors": tensors, "order": str(tmp_path / "order.npy")}
    return Expected(INITIAL, {"a": (2, 4), "b": (2, 2)}, SGD, Batches({"proof": files, "train": files}))


def first() -> Observation:
    return Observation(
        "", "proof", 0, Look(INITIAL), fresh=True, loss=2.0, activation={"a": np.ones((2, 4), np.float32)},
        gradient={name: values.astype(np.float32) for name, values in GRADIENT.items()},
    )  # fmt: skip


def walked(steps: int) -> Tensors:
    walk = Walk(INITIAL, Rule.of(SGD))
    for _ in range(steps):
        walk.step(GRADIENT)
    return walk.parameters


def second() -> Observation:
    after = {name: values.astype(np.float32) for name, values in walked(1).items()}
    velocity = {f"{n}.velocity": (GRADIENT[n] + 0.01 * INITIAL[n]).astype(np.float32) for n in INITIAL}
    return Observation("step 1", "proof", 0, Look(INITIAL), fresh=True, loss=2.0, after=Look(after, velocity))


def judged(expected: Expected, *seen: Observation, **more: Any) -> Parity:
    return compare(seen, OneAnswer(), expected, **more)


def test_what_agrees_passes(expected: Expected) -> None:
    output = Observation("evaluation", "proof", 0, Look(INITIAL), output=np.ones((2, 2), np.float32))
    parity = judged(expected, first(), second(), output, losses=[2.0, 2.0])
    assert parity.status == "passed", parity.reason
    assert (parity.notes, parity.losses) == ([], [2.0, 2.0])
    names = [one.tensor for one in parity.comparisons]
    assert names[:3] == ["activation a", "loss", "gradient b.weight"]
    ends = ["evaluation: output", "workload: loss of step 1", "workload: loss of step 2"]
    assert names[-3:] == ends
    assert {"step 1: loss", "step 1: velocity a.bias", "step 1: parameter a.weight"} <= set(names)


@pytest.mark.parametrize(("loss", "passes"), [(0.0, True), (1e-7, True), (1e-5, False), (1.0, False)])
def test_a_loss_of_which_nothing_is_left_is_nothing(expected: Expected, loss: float, *, passes: bool) -> None:
    """Of a probability that is 1 in double precision."""
    learned = OneAnswer()
    learned.loss = 0.0
    seen = replace(first(), loss=loss)
    parity = compare([seen], learned, replace(expected, is_logarithm=True))
    assert (parity.status == "passed") == passes
    assert passes or parity.tensor == "loss"


def test_losses_of_steps_that_nobody_looked_into_are_judged(expected: Expected) -> None:
    parity = judged(expected, first(), second(), losses=[2.0, 2.01])
    assert (parity.status, parity.tensor) == ("failed", "workload: loss of step 2")


def test_what_an_evaluation_changes_is_refused(expected: Expected) -> None:
    look = Look(INITIAL, {"a.bias.velocity": np.ones(4, np.float32)})
    changed = Look({**INITIAL, "b.weight": INITIAL["b.weight"] + 1}, look.state)
    seen = Observation("evaluation", "proof", 0, look, output=np.ones((2, 2), np.float32), kept=look)
    assert judged(expected, seen).status == "passed"
    parity = judged(expected, replace(seen, kept=changed))
    assert parity.tensor == "evaluation: parameter b.weight that it changed"
    parity = judged(expected, replace(seen, kept=Look(INITIAL, {"a.bias.velocity": np.zeros(4, np.float32)})))
    assert parity.tensor == "evaluation: velocity a.bias that it changed"


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("group", ["gradient", "activation", "loss", "parameter", "velocity", "output"])
def test_what_is_not_finite_never_passes(expected: Expected, group: str, value: float) -> None:
    def spoiled(good: Tensors) -> Tensors:
        return {**good, "a.bias": np.full(4, value, np.float32)}

    look = second().after
    assert look is not None
    seen = {
        "gradient": replace(first(), gradient=spoiled(tensors(1))),
        "activation": replace(first(), activation={"a": np.full((2, 4), value)}),
        "loss": replace(first(), loss=value),
        "parameter": replace(second(), after=replace(look, parameter=spoiled(look.parameter))),
        "velocity": replace(
            second(),
            after=replace(look, state={**look.state, "a.bias.velocity": np.full(4, value, np.float32)}),
        ),
        "output": replace(first(), output=np.full((2, 2), value)),
    }[group]
    parity = judged(expected, seen)
    assert parity.status == "failed"
    assert "not finite" in (parity.reason or "")


def test_names_and_shapes_come_first(expected: Expected) -> None:
    gradient = first().gradient
    assert gradient is not None
    missing = {name: values for name, values in gradient.items() if name != "a.bias"}
    parity = judged(expected, replace(first(), gradient=missing))
    assert parity.reason == "a.bias: the contender has no gradient of this name (it has a.weight, b.weight)"
    after = second().after
    assert after is not None
    extra = replace(after, parameter={**after.parameter, "c.weight": np.ones(1, np.float32)})
    assert judged(expected, replace(second(), after=extra)).tensor == "c.weight"
    turned = replace(after, parameter={**after.parameter, "a.weight": after.parameter["a.weight"].T})
    parity = judged(expected, replace(second(), after=turned))
    assert parity.reason == "a.weight: shape (3, 4), expected (4, 3) (parameter)"
    parity = judged(expected, replace(first(), activation={"a": np.ones((4, 2))}))
    assert parity.reason == "activation a: shape (4, 2), expected (2, 4)"


def test_what_was_not_said_never_passes(expected: Expected) -> None:
    assert judged(expected, replace(first(), loss=None)).tensor == "loss"
    assert judged(expected, replace(first(), output=np.ones((2, 1)))).tensor == "output"


def test_the_beginning_is_as_the_workload_says(expected: Expected) -> None:
    other = {**INITIAL, "a.bias": np.nextafter(INITIAL["a.bias"], np.float32(9))}
    assert judged(expected, replace(first(), before=Look(other))).tensor == "initial value a.bias"
    moving = Look(INITIAL, {"a.bias.velocity": np.full(4, 1e-9, np.float32)})
    assert judged(expected, replace(second(), before=moving)).tensor == "step 1: initial velocity a.bias"


@pytest.mark.parametrize(("steps", "passes"), [(4, False), (5, True), (6, False)])
def test_no_step_is_left_out_while_nobody_looks(expected: Expected, steps: int, *, passes: bool) -> None:
    plain = Plain("proof", [2.0] * 5, Look(INITIAL), Look(walked(steps)))
    parity = judged(expected, first(), second(), plain=plain)
    assert (parity.status == "passed") == passes
    if not passes:
        assert parity.tensor == "the way of 5 plain steps"


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.0, "every gradient is 0"),
        (16.0, "every gradient is 16 times the judge's"),
    ],
)
def test_what_it_looks_like(expected: Expected, factor: float, words: str) -> None:
    gradient = {name: (factor * values).astype(np.float32) for name, values in GRADIENT.items()}
    assert words in (judged(expected, replace(first(), gradient=gradient)).reason or "")


def test_verdicts_put_together(expected: Expected) -> None:
    good = judged(expected, first(), losses=[2.0])
    loss = judged(expected, replace(first(), loss=1.0))
    layer = judged(expected, replace(first(), activation={"a": np.zeros((2, 4))}), prefix="stress: ")
    assert merged(good, good).status == "passed"
    assert merged(good, good).losses == [2.0]
    assert merged(good, layer).tensor == "stress: activation a"
    assert merged(loss, layer).tensor == "stress: activation a"  # it names the layer
    assert merged(loss, good).tensor == "loss"
    assert len(merged(loss, layer).comparisons) == len(loss.comparisons) + len(layer.comparisons)


def test_timed_losses() -> None:
    proof = Parity(status="passed", losses=[2.0, 1.0])
    assert compare_losses([2.0, 1.0, 0.5], proof) is None
    assert compare_losses([2.0, 1.00001], proof) is None  # as far as two roundings of a step lead
    assert "the loss of step 2 is" in (compare_losses([2.0, 1.00003], proof) or "")
    assert "the loss of step 1 is" in (compare_losses([2.00002, 1.0], proof) or "")
    assert compare_losses([2.0, 1.00007], proof, turned=True) is None
    assert "the loss of step 2 is" in (compare_losses([2.0, 1.00009], proof, turned=True) or "")
    assert "the loss of step 1 is" in (compare_losses([2.00002, 1.0], proof, turned=True) or "")
    assert compare_losses([float("nan")], proof) is not None
    assert compare_losses([1.0], unproven("nobody knows")) is None
