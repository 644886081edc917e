"""The judgment's form: names, shapes, what is not finite, and verdicts put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.update import Rule, Walk
from timetrial.core import Input, Network
from timetrial.proof.expected import Expected
from timetrial.proof.judge import Answer, Judge, Ties
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
    is_large = False
    network = Network(
        [
            {"name": "fc", "kind": "dense", "inputs": ["images"], "attributes": {"units": 2}},
            {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
        ],
        2,
        (Input("images", (3,)), Input("labels", (), "i64", "target")),
    )

    def gradient(self, parameters: Tensors, batch: Tensors, shown: Tensors | None = None) -> Answer:
        return Answer(self.loss, GRADIENT, {"a": np.ones((2, 4))})

    def output(self, parameters: Tensors, batch: Tensors) -> np.ndarray[Any, Any]:
        return np.ones((2, 2))

    def sized(self, images: int, ties: Ties = "first", rounding: int = 0) -> Judge:
        return self


LAYERS = (
    {"name": "a", "kind": "own", "shape": (2, 4), "inputs": ["images"], "parameters": []},
    {"name": "b", "kind": "own", "shape": (2, 2), "inputs": ["a"], "parameters": []},
)


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    for name, array in (("images", np.ones((2, 3))), ("labels", np.zeros(2)), ("order", np.array([[0, 1]]))):
        np.save(tmp_path / f"{name}.npy", array)
    tensors = {name: str(tmp_path / f"{name}.npy") for name in ("images", "labels")}
    files: dict[str, Any] = {"tensors": tensors, "order": str(tmp_path / "order.npy")}
    return Expected(INITIAL, LAYERS, SGD, Batches({"proof": files, "train": files}))


def first() -> Observation:
    return Observation(
        "", "proof", 0, Look(INITIAL), fresh=True, loss=2.0, shown={"a": np.ones((2, 4), np.float32)},
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


def own_data() -> Observation:
    return replace(second(), name="own data, step 1", stream="train")


def test_what_agrees_passes(expected: Expected) -> None:
    output = Observation("evaluation", "proof", 0, Look(INITIAL), output=np.ones((2, 2), np.float32))
    parity = judged(expected, first(), second(), output, own_data(), losses=[2.0, 2.0])
    assert parity.status == "passed", parity.reason
    assert (parity.notes, parity.losses) == ([], [2.0, 2.0])
    names = [one.tensor for one in parity.comparisons]
    assert names[:3] == ["activation a", "loss", "gradient b.weight"]
    assert names[-1] == "workload: loss of step 1"
    assert "evaluation: output" in names
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


def test_first_losses_are_those_of_the_same_steps_or_the_judges_own(expected: Expected) -> None:
    for seen in ((first(), own_data()), (first(), second()), (first(),)):
        assert judged(expected, *seen, losses=[2.0]).status == "passed"
        parity = judged(expected, *seen, losses=[2.0001])
        assert (parity.status, parity.tensor) == ("failed", "workload: loss of step 1")


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
        "activation": replace(first(), shown={"a": np.full((2, 4), value)}),
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
    parity = judged(expected, replace(first(), shown={"a": np.ones((4, 2))}))
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
    plain = Plain([2.0] * 5, Look(walked(steps)), [2.0] * 5, Look(walked(5)))
    parity = judged(expected, first(), second(), plain=plain)
    assert (parity.status == "passed") == passes
    if not passes:
        assert parity.tensor == "the way of 5 plain steps"


@pytest.mark.parametrize(("step", "off", "passes"), [(0, 1e-5, False), (4, 1e-5, True), (4, 2e-3, False)])
def test_steps_that_nobody_looks_into_repeat_those_that_were(
    expected: Expected, step: int, off: float, *, passes: bool
) -> None:
    losses = [2.0] * 5
    losses[step] *= 1 + off
    plain = Plain(losses, Look(walked(5)), [2.0] * 5, Look(walked(5)))
    parity = judged(expected, first(), second(), plain=plain)
    assert (parity.status == "passed") == passes
    assert passes or parity.tensor == f"plain step {step + 1}: loss"


def test_a_loss_too_few_is_seen(expected: Expected) -> None:
    plain = Plain([2.0] * 4, Look(walked(5)), [2.0] * 5, Look(walked(5)))
    assert judged(expected, second(), plain=plain).tensor == "4 losses of 5 plain steps"


def test_updates_below_the_last_place_of_a_weight_are_no_other_way(expected: Expected) -> None:
    start = {name: values.astype(np.float64) for name, values in INITIAL.items()}
    ends = [{n: v * (1 + sign * 2.0**-24) for n, v in start.items()} for sign in (1, -1)]
    plain = Plain([2.0] * 5, Look(ends[0]), [2.0] * 5, Look(ends[1]))
    assert judged(expected, second(), plain=plain).status == "passed"


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
    layer = judged(expected, replace(first(), shown={"a": np.zeros((2, 4))}), prefix="stress: ")
    assert merged(good, good).status == "passed"
    assert merged(good, good).losses == [2.0]
    assert merged(good, layer).tensor == "stress: activation a"
    assert merged(loss, layer).tensor == "stress: activation a"  # it names the layer
    assert merged(loss, good).tensor == "loss"
    assert len(merged(loss, layer).comparisons) == len(loss.comparisons) + len(layer.comparisons)


def test_timed_losses() -> None:
    proof = Parity(status="passed", losses=[2.0, 1.0])
    assert compare_losses([2.0, 1.0, 0.5], proof) is None
    assert "the loss of step 1 is" in (compare_losses([2.00002, 1.0], proof) or "")
    assert compare_losses([2.0, 1.00001], proof) is None
    assert "the loss of step 2 is" in (compare_losses([2.0, 1.00003], proof) or "")
    assert compare_losses([float("nan")], proof) is not None
    assert compare_losses([1.0], unproven("nobody knows")) is None
