"""The update rule: what rounding may do to an honest step, in any order, and what it may not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from timetrial.agreement import sizes
from timetrial.agreement.update import Rule, Walk
from timetrial.agreement.update import Update as Step
from timetrial.errors import InputError
from timetrial.proof.rule import changes, implied_gradient
from timetrial.questions.observed import Look, Observation

TOLERANCE = 2e-5


def sgd(rate: float, momentum: float, decay: float, **options: Any) -> Rule:
    return Rule(
        {"name": "sgd", "learning_rate": rate, "momentum": momentum, "weight_decay": decay, **options}
    )


F32 = NDArray[np.float32]
Update = Callable[[F32, F32, F32, Rule], tuple[F32, F32]]


def numbers(rule: Rule) -> tuple[np.float32, np.float32, np.float32]:
    rate, momentum, decay = (rule.optimizer[key] for key in ("learning_rate", "momentum", "weight_decay"))
    return np.float32(rate), np.float32(momentum), np.float32(decay)


def as_written(w: F32, v: F32, g: F32, rule: Rule) -> tuple[F32, F32]:
    rate, momentum, decay = numbers(rule)
    v = momentum * v + (g + decay * w)
    return w - rate * v, v


def decay_first(w: F32, v: F32, g: F32, rule: Rule) -> tuple[F32, F32]:
    rate, momentum, decay = numbers(rule)
    v = (decay * w + momentum * v) + g
    return w - rate * v, v


def rate_inside(w: F32, v: F32, g: F32, rule: Rule) -> tuple[F32, F32]:
    """Keras: the velocity carries minus the rate; an adapter divides it out again."""
    rate, momentum, decay = numbers(rule)
    kept = momentum * (-rate * v) - rate * (g + decay * w)
    return w + kept, kept / -rate


def shrinking(w: F32, v: F32, g: F32, rule: Rule) -> tuple[F32, F32]:
    rate, momentum, decay = numbers(rule)
    shrunk = w * (np.float32(1) - rate * decay)
    return shrunk - rate * (momentum * v + g), momentum * v + (g + decay * w)


def step(
    update: Update, seed: int, rule: Rule, scale: float, size: int = 50, *, shown: bool = True
) -> tuple[Observation, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    w, v, g = (rng.normal(0, one, size).astype(np.float32) for one in (0.1, 3 * scale, scale))
    earlier = (w.astype(np.float64) + rule.rate(0) * v).astype(np.float32)
    after, velocity = update(w, v, g, rule)
    seen = Observation(
        "step 9", "proof", 0, Look({"w": w}, {"w.velocity": v} if shown else {}),
        earlier=Look({"w": earlier}), after=Look({"w": after}, {"w.velocity": velocity} if shown else {}),
    )  # fmt: skip
    return seen, {"w": g.astype(np.float64)}


RULES = st.builds(
    sgd,
    rate=st.sampled_from([1e-4, 1e-3, 0.02, 0.5]),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    decay=st.sampled_from([0.0, 5e-4, 0.05]),
)


@settings(max_examples=60, deadline=None)
@given(
    update=st.sampled_from([as_written, decay_first, rate_inside, shrinking]),
    seed=st.integers(0, 10**6),
    rule=RULES,
    scale=st.sampled_from([1e-6, 1e-3, 1.0]),
    size=st.sampled_from([1, 10, 2000]),
    shown=st.booleans(),
)
def test_an_honest_step_in_any_order_is_within_its_bound(
    update: Update, seed: int, rule: Rule, scale: float, size: int, *, shown: bool
) -> None:
    seen, gradient = step(update, seed, rule, scale, size, shown=shown)
    found = changes(seen, gradient, rule, TOLERANCE)
    assert {one.kind for one in found} == (
        {"velocity", "parameter"} if shown and rule.states else {"parameter"}
    )
    for one in found:
        assert one.error <= one.limit, one


def changed(rule: Rule, **numbers: float) -> Rule:
    return Rule({**rule.optimizer, **numbers})


WRONG: list[tuple[str, Update]] = [
    ("no decay", lambda w, v, g, r: as_written(w, v, g, changed(r, weight_decay=0.0))),
    ("momentum", lambda w, v, g, r: as_written(w, v, g, changed(r, momentum=0.89))),
    ("rate", lambda w, v, g, r: as_written(w, v, g, changed(r, learning_rate=1.001 * r.rate(0)))),
    ("still", lambda w, v, g, r: (w, v)),
    ("gradient", lambda w, v, g, r: as_written(w, v, np.float32(1.0001) * g, r)),
]


@pytest.mark.parametrize(("name", "update"), WRONG, ids=[name for name, _ in WRONG])
def test_a_wrong_step_is_beyond_it(name: str, update: Update) -> None:
    """At a rate of 0.02 even the weights tell; the velocities tell at any rate."""
    seen, gradient = step(update, 3, sgd(0.02, 0.9, 5e-4), 1e-2)
    found = changes(seen, gradient, sgd(0.02, 0.9, 5e-4), TOLERANCE)
    assert any(one.error > one.limit for one in found)
    seen, gradient = step(update, 3, sgd(1e-4, 0.9, 5e-4), 1e-2)
    found = changes(seen, gradient, sgd(1e-4, 0.9, 5e-4), TOLERANCE)
    assert any(one.error > one.limit for one in found) or name == "rate"


def test_what_rounding_is_allowed_is_added_up_where_the_quick_look_does_not_do() -> None:
    """A velocity of f32 far larger than the gradient is off by its own last places."""
    rule, rng = sgd(0.5, 0.9, 0.0), np.random.default_rng(1)
    w, v, g = (rng.normal(0, one, 50).astype(np.float32) for one in (0.1, 10.0, 1e-3))
    after, velocity = as_written(w, v, g, rule)
    before, behind = Look({"w": w}, {"w.velocity": v}), Look({"w": after}, {"w.velocity": velocity})
    found, _ = changes(Observation("step 9", "proof", 0, before, after=behind), {"w": g}, rule, TOLERANCE)
    assert TOLERANCE * sizes.norm(g) < found.error <= found.limit


def test_without_velocities_and_without_the_step_before_nothing_is_said() -> None:
    rule = sgd(0.02, 0.9, 0.0)
    seen, gradient = step(as_written, 1, rule, 1e-2, shown=False)
    blind = Observation("step 9", "proof", 0, seen.before, after=seen.after)
    assert changes(blind, gradient, rule, TOLERANCE) == []
    assert implied_gradient(blind, "w", rule, gradient, 1.0) is None


@pytest.mark.parametrize("shown", [True, False])
def test_the_gradient_that_a_step_used(*, shown: bool) -> None:
    rule = sgd(0.5, 0.9, 0.05)
    seen, gradient = step(as_written, 1, rule, 1.0, shown=shown)
    used = implied_gradient(seen, "w", rule, gradient, sizes.norm(gradient["w"]))
    assert used is not None
    assert np.linalg.norm(used - gradient["w"]) <= 1e-6 * np.linalg.norm(gradient["w"])


@pytest.mark.parametrize("shown", [True, False])
def test_a_large_tensor_is_judged_in_pieces(monkeypatch: pytest.MonkeyPatch, *, shown: bool) -> None:
    """The same is said of it, a wrong value in its last piece is seen, and never is there as much in memory
    as one copy of it."""
    rule, count = sgd(0.5, 0.9, 0.05), 50_001
    seen, gradient = step(as_written, 1, rule, 1.0, count, shown=shown)
    used = implied_gradient(seen, "w", rule, gradient, sizes.norm(gradient["w"]))
    monkeypatch.setattr(sizes, "PIECE", 500)
    again = implied_gradient(seen, "w", rule, gradient, sizes.norm(gradient["w"]))
    assert used is not None
    assert again is not None
    np.testing.assert_allclose(again, used, rtol=1e-12)
    tracemalloc.start()
    found = changes(seen, gradient, rule, TOLERANCE)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * count
    assert all(one.error <= one.limit for one in found), found
    assert seen.after is not None
    seen.after.parameter["w"][-1] += 1
    *_, parameter = changes(seen, gradient, rule, TOLERANCE)
    assert parameter.error > parameter.limit


def test_a_walk_is_the_rule_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "PIECE", 1)
    rule = sgd(0.1, 0.9, 0.01)
    start = {"w": np.array([1.0, -2.0])}
    gradients = [{"w": np.array([0.5, 0.25])}, {"w": np.array([-0.5, 1.0])}]
    w, v = start["w"], np.zeros(2)
    walk = Walk(start, rule)
    for one in gradients:
        v = 0.9 * v + one["w"] + 0.01 * w
        w = w - 0.1 * v
        walk.step(one)
    assert np.array_equal(walk.parameters["w"], w)
    assert start["w"].tolist() == [1.0, -2.0]


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("option", [None, "nesterov", "decoupled", "rate_inside"])
def test_slopes_of_a_linear_rule_are_those_of_two_values(
    option: str | None, momentum: float, *, shown: bool
) -> None:
    rule = sgd(0.1, momentum, 0.01, **({option: True} if option else {}))
    rng = np.random.default_rng(3)
    weight, velocity, gradient = rng.standard_normal((3, 50))
    states = dict.fromkeys(rule.states, velocity)
    update = Step(rule, rule.numbers(4), weight, {"velocity": velocity}, states if shown else {})
    made, moved = update.slopes(gradient, 1.0, 0.0)
    (above, further), (below, less) = (update.outcome(gradient + width) for width in (1e-3, -1e-3))
    assert made.keys() == above.keys()
    for name, slope in made.items():
        np.testing.assert_allclose(slope, np.abs(above[name] - below[name]) / 2e-3, rtol=1e-9)
    np.testing.assert_allclose(moved, np.abs(further - less) / 2e-3, rtol=1e-9, atol=1e-15)


def test_an_unknown_optimizer() -> None:
    with pytest.raises(InputError, match="no update rule is known for the optimizer 'lion'"):
        Rule.of({"name": "lion"})


@pytest.mark.parametrize(("noise", "is_allowed"), [(1e-7, True), (1e-3, False)])
def test_a_gradient_that_vanishes_may_be_noise_beside_velocity_and_decay(
    noise: float, is_allowed: bool
) -> None:
    """The bias in front of a normalization: its gradient is 0 but for rounding, its velocity is not."""
    rule, rng = sgd(0.05, 0.9, 0.1), np.random.default_rng(1)
    weights = {"fc.weight": rng.normal(0, 1, (4, 4)), "fc.bias": rng.normal(0, 0.1, 4)}
    gradient = {"fc.weight": rng.normal(0, 1, (4, 4)), "fc.bias": rng.normal(0, 1e-17, 4)}
    states = {f"{name}.velocity": rng.normal(0, 0.05, one.shape) for name, one in weights.items()}
    before, after = Look(weights, states), Look({}, {})
    for name, one in weights.items():
        fed = gradient[name] + (noise if name == "fc.bias" else 0.0) + 0.1 * one
        after.state[f"{name}.velocity"] = 0.9 * states[f"{name}.velocity"] + fed
        after.parameter[name] = one - 0.05 * after.state[f"{name}.velocity"]
    seen = Observation("step 2", "proof", 1, before, step=1, after=after)
    found = changes(seen, gradient, rule, TOLERANCE)
    (bias,) = (one for one in found if (one.kind, one.name) == ("velocity", "fc.bias"))
    assert (bias.error <= bias.limit) == is_allowed
    assert all(one.error <= one.limit for one in found if one is not bias)
