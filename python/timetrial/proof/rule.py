"""The update rule, in double precision, and how far an honest step in single precision may be from it.

    g = gradient + weight_decay * w;  v' = momentum * v + g;  w' = w - learning_rate * v'     (backend.h)

Each step is judged on its own, from the contender's own w and v: what is compared are the *changes*, v' - m v
and w' - w, so that no error hides in the size of a weight. Two things make an honest change inexact:

- its gradient, which is allowed GRADIENT_TOLERANCE of the judge's (relative L2);
- rounding. A sum that is kept in f32 is off by at most u = 2^-24 of itself, element by element. A step that
is written in another order (decay first, the rate inside v) rounds at most one sum more of the same size. For
v': m v, decay w, their sums with the gradient and, where a framework keeps -rate * v, two conversions: 4 u
(|m v| + |decay w| + |v'|). For w': u (|w| + |w'|), and the rate times what v' has.

So a change far below the last place of its weight cannot be judged by the weight; its velocity still can.
Where a framework hides its velocities, the step before tells them: v = -(w - w_before) / rate, and the
rounding of those two weights, times the momentum, is allowed as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.errors import InputError
from timetrial.proof.observed import Observation, Tensors

UNIT = 2.0**-24  # half a unit in the last place of f32, relative
SMALLEST = 2.0**-126  # what a processor that flushes subnormals may lose, absolute

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """SGD's numbers."""

    rate: float
    momentum: float
    decay: float

    @classmethod
    def of(cls, optimizer: Mapping[str, Any]) -> Rule:
        """Of an optimizer as in the job file."""
        if optimizer["name"] != "sgd":
            raise InputError(f"no update rule is known for the optimizer {optimizer['name']!r}")
        return cls(
            rate=float(optimizer["learning_rate"]),
            momentum=float(optimizer.get("momentum", 0.0)),
            decay=float(optimizer.get("weight_decay", 0.0)),
        )


@dataclass(frozen=True)
class Change:
    """How one tensor changed against how it should have: norms, all absolute."""

    kind: str  # "velocity", "parameter"
    name: str
    error: float
    limit: float
    size: float  # of the change that was expected


def follow(parameters: Tensors, gradients: list[Tensors], rule: Rule) -> Tensors:
    """The parameters after one update per element of `gradients`, from velocities of 0."""
    weights = {name: np.asarray(tensor, np.float64) for name, tensor in parameters.items()}
    velocity = {name: np.zeros_like(tensor) for name, tensor in weights.items()}
    for step in gradients:
        for name, tensor in weights.items():
            velocity[name] = rule.momentum * velocity[name] + step[name] + rule.decay * tensor
            weights[name] = tensor - rule.rate * velocity[name]
    return weights


def changes(seen: Observation, gradient: Tensors, rule: Rule, tolerance: float) -> list[Change]:
    """Every change of a step, from the loss back. `gradient`: the judge's, at seen.before. Where neither the
    velocity nor the step before is known, nothing can be said of a parameter, and nothing is."""
    assert seen.after is not None
    found = []
    for name in reversed(list(gradient)):
        known = _velocity(seen, name, rule)
        if known is None:
            continue
        velocity, doubt = known
        weight, after = _wide(seen.before.parameter[name]), _wide(seen.after.parameter[name])
        decayed = rule.decay * weight
        fresh = gradient[name] + decayed
        expected = rule.momentum * velocity + fresh
        rounding = 4 * UNIT * (np.abs(rule.momentum * velocity) + np.abs(decayed) + np.abs(expected))
        allowed = tolerance * norm(gradient[name]) + norm(rounding) + rule.momentum * norm(doubt)
        allowed += SMALLEST * np.sqrt(weight.size)
        if rule.momentum and name in seen.after.velocity:
            error = norm(_wide(seen.after.velocity[name]) - expected)
            found.append(Change("velocity", name, error, allowed, norm(fresh)))
        change = -rule.rate * expected
        sums = UNIT * (np.abs(weight) + np.abs(after))
        limit = rule.rate * allowed + norm(sums) + SMALLEST * np.sqrt(weight.size)
        found.append(Change("parameter", name, norm(after - weight - change), limit, norm(change)))
    return found


def implied_gradient(seen: Observation, name: str, rule: Rule) -> Doubles | None:
    """The gradient that a step must have used; None where its velocity is not known."""
    assert seen.after is not None
    known = _velocity(seen, name, rule)
    if known is None:
        return None
    weight = _wide(seen.before.parameter[name])
    if rule.momentum and name in seen.after.velocity:
        after = _wide(seen.after.velocity[name])
    else:
        after = (weight - _wide(seen.after.parameter[name])) / rule.rate
    return after - rule.momentum * known[0] - rule.decay * weight


def _velocity(seen: Observation, name: str, rule: Rule) -> tuple[Doubles, Doubles] | None:
    """The velocity before a step, and how far rounding may have moved it (element by element)."""
    weight = _wide(seen.before.parameter[name])
    if seen.fresh or not rule.momentum:
        return np.zeros_like(weight), np.zeros_like(weight)
    if name in seen.before.velocity:
        return _wide(seen.before.velocity[name]), np.zeros_like(weight)
    if seen.earlier is None or not rule.rate:
        return None
    earlier = _wide(seen.earlier.parameter[name])
    return (earlier - weight) / rule.rate, UNIT * (np.abs(weight) + np.abs(earlier)) / rule.rate


def _wide(array: NDArray[Any]) -> Doubles:
    return np.asarray(array, np.float64)


def norm(array: Doubles) -> float:
    """Euclidean. np.linalg.norm would wake the threads of a BLAS for it."""
    return math.sqrt(inner(array, array))


def inner(one: Doubles, other: Doubles) -> float:
    """The sum of products, element by element, without a BLAS as well."""
    return float(np.einsum("i,i->", np.ravel(one), np.ravel(other)))
