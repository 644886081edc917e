"""Every rule of the table: an honest step in f32 is within its bound, and what is often wrong is beyond."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from timetrial.agreement import sizes
from timetrial.agreement.update import Rule
from timetrial.optimizers import OPTIMIZERS, check_optimizer
from timetrial.proof.rule import Change, changes, lacking
from timetrial.questions.observed import Look, Observation, Tensors

F32 = NDArray[np.float32]
TOLERANCE = 2e-5
SHAPES = {"a.weight": (20, 30), "a.bias": (20,)}
# As the proof's own recipe has them: an epsilon as large as the root of a mean square, and a rate that jumps.
EPSILON, RATES = 0.01, np.array([0.004, 0.0016, 0.0028, 0.0052])
SOME: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9, "weight_decay": 0.05},
    "adam": {"epsilon": EPSILON, "weight_decay": 0.05},
    "adamw": {"epsilon": EPSILON, "weight_decay": 0.5},
    "rmsprop": {"epsilon": EPSILON},
    "adagrad": {"epsilon": EPSILON},
    "adadelta": {"epsilon": EPSILON**2},
}
CASES = [
    *SOME.items(),
    ("sgd", {**SOME["sgd"], "nesterov": True}),
    ("sgd", {**SOME["sgd"], "decoupled": True}),
    ("sgd", {**SOME["sgd"], "rate_inside": True}),
    ("sgd", {**SOME["sgd"], "clip_norm": 0.1}),
]
Step = Callable[[dict[str, Any], float, int, F32, F32, dict[str, F32]], tuple[F32, dict[str, F32]]]


def rule_of(name: str, **more: Any) -> Rule:
    return Rule(check_optimizer({"name": name, "learning_rate": 0.004, **more}), RATES)


def honest(given: dict[str, Any], rate: float, t: int, w: F32, g: F32, s: dict[str, F32]) -> Any:
    """Every rule in f32, in its own words: nothing here is taken from the table."""
    one, lr = np.float32(1), np.float32(rate)
    decay = np.float32(given["weight_decay"])
    away = given["name"] == "adamw" or given.get("decoupled")
    if away:
        w = w * (one - lr * decay)
    else:
        g = g + decay * w
    if given["name"] == "sgd":
        inner = lr if given.get("rate_inside") else one
        momentum = np.float32(given["momentum"])
        v = momentum * s["velocity"] + inner * g
        way = inner * g + momentum * v if given.get("nesterov") else v
        return w - (one if given.get("rate_inside") else lr) * way, {"velocity": v}
    eps = np.float32(given["epsilon"])
    if "beta1" in given:
        b1, b2 = np.float32(given["beta1"]), np.float32(given["beta2"])
        m = b1 * s["first_moment"] + (one - b1) * g
        v = b2 * s["second_moment"] + (one - b2) * g * g
        factor = np.float32(rate * math.sqrt(1 - given["beta2"] ** t) / (1 - given["beta1"] ** t))
        return w - factor * m / (np.sqrt(v) + eps), {"first_moment": m, "second_moment": v}
    if given["name"] == "adagrad":
        square = s["squared_sum"] + g * g
        return w - lr * g / (np.sqrt(square) + eps), {"squared_sum": square}
    rho = np.float32(given["rho"])
    square = rho * s["second_moment"] + (one - rho) * g * g
    if given["name"] == "rmsprop":
        return w - lr * g / (np.sqrt(square) + eps), {"second_moment": square}
    x = np.sqrt((s["squared_update"] + eps) / (square + eps)) * g
    update = rho * s["squared_update"] + (one - rho) * x * x
    return w - lr * x, {"second_moment": square, "squared_update": update}


def clipped(given: dict[str, Any], gradients: dict[str, F32], *, each: bool = False) -> dict[str, F32]:
    most = given.get("clip_norm")
    if not most:
        return gradients
    norms = {name: float(np.linalg.norm(one)) for name, one in gradients.items()}
    whole = math.sqrt(sum(one * one for one in norms.values()))
    return {
        name: (min(1.0, most / (norms[name] if each else whole)) * one).astype(np.float32)
        for name, one in gradients.items()
    }


def seen_steps(
    rule: Rule, step: Step, *, each: bool = False, late: int = 0, nothing_left: bool = False
) -> list[list[Change]]:
    """Four steps of a contender, each judged from its own values. `late`: steps until its rate changes.
    `nothing_left`: of the gradient of a.weight, of which the contender has what rounding left."""
    rng = np.random.default_rng(4)
    given = dict(rule.optimizer)
    weights = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in SHAPES.items()}
    states = {
        name: {one.name: np.zeros(shape, np.float32) for one in rule.kind.states}
        for name, shape in SHAPES.items()
    }
    found = []
    for number in range(4):
        gradients = {name: rng.normal(0, 0.01, shape).astype(np.float32) for name, shape in SHAPES.items()}
        gradients["a.weight"][:5] *= np.float32(1e-5)  # where only the epsilon decides
        judged = {name: one.astype(np.float64) for name, one in gradients.items()}
        limits = {name: float(np.linalg.norm(one)) for name, one in judged.items()}
        if nothing_left:
            gradients["a.weight"] *= np.float32(1e-6)
            judged["a.weight"] *= 1e-15
            limits["a.weight"] = 2e-6 * limits["a.weight"] / TOLERANCE
        before = Look(dict(weights), _flat(states))
        fed = clipped(given, gradients, each=each)
        for name in SHAPES:
            rate = rule.rate(max(0, number - late))
            weights[name], states[name] = step(
                given, rate, number + 1, weights[name], fed[name], states[name]
            )
        seen = Observation(
            f"step {number + 1}", "proof", 0, before, fresh=number == 0, step=number,
            after=Look(dict(weights), _flat(states)),
        )  # fmt: skip
        assert lacking(seen, rule) is None
        found.append(changes(seen, judged, rule, TOLERANCE, limits if nothing_left else None))
    return found


def _flat(states: dict[str, dict[str, F32]]) -> Tensors:
    return {f"{name}.{state}": one for name, all_ in states.items() for state, one in all_.items()}


@pytest.mark.parametrize(("name", "more"), CASES)
def test_an_honest_step_in_f32(name: str, more: dict[str, Any]) -> None:
    rule = rule_of(name, **more)
    for step in seen_steps(rule, honest):
        assert {one.kind for one in step} == {"parameter", *rule.states}
        for one in step:
            assert one.error <= one.limit, one


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_where_next_to_nothing_is_left_of_a_gradient(name: str) -> None:
    """Rounding is most of it then, and the square of that most of a second moment."""
    for step in seen_steps(rule_of(name), honest, nothing_left=True):
        for one in step:
            assert one.error <= one.limit, one


@pytest.mark.parametrize(("name", "more"), CASES)
def test_in_pieces_as_in_one(monkeypatch: pytest.MonkeyPatch, name: str, more: dict[str, Any]) -> None:
    rule = rule_of(name, **more)
    whole = seen_steps(rule, honest)
    monkeypatch.setattr(sizes, "PIECE", 7)
    for step, same in zip(seen_steps(rule, honest), whole, strict=True):
        assert [(one.kind, one.name) for one in step] == [(one.kind, one.name) for one in same]
        for one, other in zip(step, same, strict=True):
            numbers = [(one.error, other.error), (one.limit, other.limit), (one.size, other.size)]
            assert all(a == pytest.approx(b, rel=1e-9) for a, b in numbers), (one, other)


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"sgd"}))
def test_with_the_epsilon_that_users_take(name: str) -> None:
    for step in seen_steps(rule_of(name), honest):
        assert all(one.error <= one.limit for one in step), step


def no_correction(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    return honest(given, rate, 10_000, w, g, s)


def paper_epsilon(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    other = {**given, "epsilon": given["epsilon"] * math.sqrt(1 - given["beta2"] ** t)}
    return honest(other, rate, t, w, g, s)


def inside_root(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    _, after = honest(given, rate, t, w, g, s)
    square = after["second_moment"]
    return w - np.float32(rate) * g / np.sqrt(square + np.float32(given["epsilon"])), after


def other_form(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    """The rate in the velocity, shown as if it were not there: right while it stays."""
    v = np.float32(given["momentum"]) * s["velocity"] + (g + np.float32(given["weight_decay"]) * w)
    kept = s.setdefault("kept", np.zeros_like(w))
    kept = np.float32(given["momentum"]) * kept + np.float32(rate) * (
        g + np.float32(given["weight_decay"]) * w
    )
    return w - kept, {"velocity": v, "kept": kept}


def coupled(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    return honest({**given, "name": "adam"}, rate, t, w, g, s)


def no_decay_of_biases(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    return honest({**given, "weight_decay": 0.0} if w.ndim < 2 else given, rate, t, w, g, s)


def lost_states(given: Any, rate: float, t: int, w: F32, g: F32, s: Any) -> Any:
    return honest(given, rate, t, w, g, {name: np.zeros_like(one) for name, one in s.items()})


WRONG: list[tuple[str, Step, dict[str, Any], str]] = [
    ("adam", no_correction, {}, "parameter"),
    ("adam", paper_epsilon, {}, "parameter"),
    ("adamw", coupled, {}, "first_moment"),
    ("adam", no_decay_of_biases, {}, "first_moment"),
    ("adamw", no_decay_of_biases, {}, "parameter"),
    ("adam", lost_states, {}, "first_moment"),
    ("adadelta", lost_states, {}, "second_moment"),
    ("rmsprop", inside_root, {}, "parameter"),
    ("sgd", other_form, {}, "parameter"),
    ("sgd", no_decay_of_biases, {}, "velocity"),
]


@pytest.mark.parametrize(("name", "step", "more", "kind"), WRONG)
def test_what_is_often_wrong_is_found_and_named(name: str, step: Step, more: Any, kind: str) -> None:
    found = [one for all_ in seen_steps(rule_of(name, **SOME[name], **more), step) for one in all_]
    assert kind in {one.kind for one in found if one.error > one.limit}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_rate_that_changes_one_step_late(name: str) -> None:
    first, second, *_ = seen_steps(rule_of(name, **SOME[name]), honest, late=1)
    assert all(one.error <= one.limit for one in first)
    assert {one.kind for one in second if one.error > one.limit} == {"parameter"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_clipping_each_tensor_by_itself(name: str) -> None:
    rule = rule_of(name, **{**SOME[name], "clip_norm": 0.05})
    assert all(one.error <= one.limit for step in seen_steps(rule, honest) for one in step)
    assert any(one.error > one.limit for step in seen_steps(rule, honest, each=True) for one in step)


def test_states_that_are_not_shown_are_missed() -> None:
    """Of plain SGD two weights tell the velocity; of everything else nothing could be judged."""
    look = Look({"w": np.ones(3, np.float32)})
    seen = Observation("step 2", "proof", 0, look, step=1, after=look)
    assert lacking(seen, rule_of("sgd", momentum=0.9)) is None
    assert lacking(seen, rule_of("sgd", momentum=0.9, nesterov=True)) == "w.velocity"
    assert lacking(seen, rule_of("adam")) == "w.first_moment"
