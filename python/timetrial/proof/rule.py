"""The update rule, in double precision, and how far an honest step in single precision may be from it.

What each rule computes stands in optimizers/rules.py, once. Here each step is judged on its own, from the
contender's own weights and states: what is compared are the *changes*, so that no error hides in the size of
a weight. A state is judged from the states before the step and the judge's gradient; the weight from the
states that the contender showed behind the step. Three things make an honest change inexact:

- its gradient, which is allowed some part of the judge's (relative L2, precision.py), and of the norm that
clips it as much again. How far that moves a state is the slope of the rule there. Where the step is
proportional to the gradient, its error is measured in gradients, so that a large divisor excuses nothing
elsewhere;
- rounding. A sum that is kept in f32 is off by at most u = 2^-24 of itself, element by element. A state is
allowed 4 u of all its terms, a step 8 u of itself, and the weight u (|w| + |w'|);
- the rule's own numbers, which are kept in f32 as well: each is off by u of itself. 1 - beta2^t makes much of
that, so four times as much is allowed where the number takes part in the step.

So a change far below the last place of its weight cannot be judged by the weight; its states still can. Where
a framework hides the velocities of plain SGD, the step before tells them: v = -(w - w_before) / rate, and the
rounding of those two weights, times the momentum, is allowed as well. Of every other rule the states must be
shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.errors import InputError
from timetrial.optimizers import OPTIMIZERS, Optimizer, kept_states
from timetrial.proof.observed import Look, Observation, Tensors

UNIT = 2.0**-24  # half a unit in the last place of f32, relative
VANISHING = 1e-9  # of the largest gradient of a layer: of sums in double precision nothing more is left
SMALLEST = 2.0**-126  # what a processor that flushes subnormals may lose, absolute
AS_IS = ("t", "nesterov", "rate_inside")  # numbers of a step that are exact in every type

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """An optimizer with its numbers. `rates`: of each step since a reset, then the last; empty: one.
    `undecayed`: names of parameters that its decay is not for."""

    optimizer: Mapping[str, Any]
    rates: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    undecayed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, optimizer: Mapping[str, Any], undecayed: frozenset[str] = frozenset()) -> Rule:
        """Of an optimizer as in the job file."""
        if optimizer["name"] not in OPTIMIZERS:
            raise InputError(f"no update rule is known for the optimizer {optimizer['name']!r}")
        file = optimizer.get("rates")
        return cls(optimizer, np.load(file, allow_pickle=False) if file else np.empty(0), undecayed)

    def for_parameter(self, name: str) -> Rule:
        """As it is for this one."""
        if name not in self.undecayed:
            return self
        return replace(self, optimizer={**self.optimizer, "weight_decay": 0.0})

    @property
    def kind(self) -> Optimizer:
        """Its entry in the table."""
        return OPTIMIZERS[self.optimizer["name"]]

    @property
    def states(self) -> list[str]:
        """The names of the states that matter."""
        return kept_states(self.optimizer)

    @property
    def may_hide(self) -> bool:
        """Whether two weights tell its state: of SGD as it is always written."""
        options = ("nesterov", "decoupled", "rate_inside")
        return self.optimizer["name"] == "sgd" and not any(self.optimizer.get(one) for one in options)

    @property
    def decay(self) -> float:
        """Of the weights, wherever it goes."""
        return float(self.optimizer.get("weight_decay", 0.0))

    @property
    def decoupled(self) -> bool:
        """Whether the decay is taken from the weight itself."""
        return self.kind.decoupled or bool(self.optimizer.get("decoupled"))

    def rate(self, step: int) -> float:
        """Of the step behind so many since a reset."""
        if len(self.rates):
            return float(self.rates[min(step, len(self.rates) - 1)])
        return float(self.optimizer["learning_rate"])

    def numbers(self, step: int) -> dict[str, float]:
        """What the formulas of the table are given."""
        given = {
            key: float(self.optimizer.get(key, limits.default or 0.0))
            for key, limits in self.kind.keys.items()
        }
        flags = {flag: float(bool(self.optimizer.get(flag))) for flag in self.kind.flags}
        return {**given, **flags, "rate": self.rate(step), "t": step + 1}

    def scale(self, gradient: Tensors) -> float:
        """What clipping multiplies every gradient by."""
        limit = self.optimizer.get("clip_norm")
        if not limit:
            return 1.0
        size = math.sqrt(sum(inner(one, one) for one in (_wide(tensor) for tensor in gradient.values())))
        return min(1.0, limit / size) if size > 0 else 1.0

    def fed(self, gradient: Doubles, weight: Doubles) -> Doubles:
        """The `g` of the formulas."""
        return gradient if self.decoupled else gradient + self.decay * weight


@dataclass(frozen=True)
class Change:
    """How one tensor changed against how it should have: norms, all absolute."""

    kind: str  # the name of a state, or "parameter"
    name: str
    error: float
    limit: float
    size: float  # of the change that was expected


def follow(parameters: Tensors, gradients: list[Tensors], rule: Rule) -> Tensors:
    """The parameters after one update per element of `gradients`, from states of 0."""
    weights = {name: _wide(tensor) for name, tensor in parameters.items()}
    states = {
        name: {state.name: np.zeros_like(tensor) for state in rule.kind.states}
        for name, tensor in weights.items()
    }
    for step, raw in enumerate(gradients):
        scale, numbers = rule.scale(raw), rule.numbers(step)
        for name, tensor in weights.items():
            update = _Update(rule.for_parameter(name), numbers, tensor, states[name], {})
            after, moved = update.outcome(scale * _wide(raw[name]))
            weights[name], states[name] = tensor - moved, after
    return weights


@dataclass(frozen=True)
class _Update:
    """One step of one parameter. `shown`: states behind it that are known, that later formulas start from."""

    rule: Rule
    numbers: Mapping[str, float]
    weight: Doubles
    before: Mapping[str, Doubles]
    shown: Mapping[str, Doubles]

    def outcome(self, gradient: Doubles) -> tuple[dict[str, Doubles], Doubles]:
        """The states as they should be, and what should be taken from the weight."""
        return self._computed(self.rule.fed(gradient, self.weight), self.numbers)

    def without_gradient(self, state: str) -> Doubles:
        """What a state would be if nothing came to it."""
        return self._computed(np.zeros_like(self.weight), self.numbers)[0][state]

    def magnitudes(self, gradient: Doubles) -> dict[str, Doubles]:
        """Of the terms of every state: no term has another sign than its factors."""
        fed = self.rule.fed(np.abs(gradient), np.abs(self.weight))
        before = {name: np.abs(values) for name, values in self.before.items()}
        return _Update(self.rule, self.numbers, self.weight, before, self.shown)._computed(fed, self.numbers)[
            0
        ]

    def slopes(self, gradient: Doubles, size: float) -> tuple[dict[str, Doubles], Doubles]:
        """By how much of a gradient's error each state is off, and the step. States are at most quadratic in
        the gradient, so the difference of two values tells it exactly; but not that of values which a
        vanishing gradient does not move. `size`: what errors of the gradient are measured by."""
        own = norm(gradient)
        typical = (own if own > VANISHING * size else size) / math.sqrt(gradient.size)
        width = 1e-3 * (np.abs(gradient) + (typical or 1.0))
        above, below = self.outcome(gradient + width), self.outcome(gradient - width)
        states = {name: np.abs(above[0][name] - below[0][name]) / (2 * width) for name in above[0]}
        return states, np.abs(above[1] - below[1]) / (2 * width)

    def rounded_numbers(self, gradient: Doubles) -> tuple[dict[str, Doubles], Doubles]:
        """By how much the states and the step change where each number of the rule is off by u of itself."""
        fed = self.rule.fed(gradient, self.weight)
        own, moved = self._computed(fed, self.numbers)
        states, step = {name: np.zeros_like(fed) for name in own}, np.zeros_like(fed)
        for key, value in self.numbers.items():
            if key in AS_IS or not value:
                continue
            other, turned = self._computed(fed, {**self.numbers, key: value * (1 - UNIT)})
            step = step + 4 * np.abs(turned - moved)
            for name, values in other.items():
                states[name] = states[name] + np.abs(values - own[name])
        return states, step

    def _computed(self, fed: Doubles, numbers: Mapping[str, float]) -> tuple[dict[str, Doubles], Doubles]:
        expected: dict[str, Doubles] = {}
        after: dict[str, Doubles] = {}
        for state in self.rule.kind.states:
            expected[state.name] = state.after(fed, self.before, after, numbers)
            after[state.name] = self.shown.get(state.name, expected[state.name])
        moved = self.rule.kind.step(fed, self.before, after, numbers)
        if self.rule.decoupled:
            moved = moved + numbers["rate"] * self.rule.decay * self.weight
        return expected, moved


def size_of(gradient: Tensors, name: str) -> float:
    """What an error of a parameter's gradient is measured by: its own size; or, where it vanishes, that of
    the largest of its layer. A bias that a normalization takes away again has a gradient of 0, of which
    doubles and f32 compute nothing but what rounding left. The two of a normalization, vectors of one length,
    are sums over the same values, either of which may cancel: always the larger."""
    own, layer = norm(gradient[name]), name.rpartition(".")[0]
    whole = [values for one, values in gradient.items() if one.rpartition(".")[0] == layer]
    largest = max(norm(values) for values in whole)
    are_alike = len(whole) > 1 and all(values.shape == whole[0].shape for values in whole)
    return own if own > VANISHING * largest and not are_alike else largest


def changes(
    seen: Observation,
    gradient: Tensors,
    rule: Rule,
    tolerance: float,
    sizes: Mapping[str, float] | None = None,
) -> list[Change]:
    """Every change of a step, from the loss back. `gradient`: the judge's, at seen.before; `sizes`: what its
    errors are measured by (size_of). Where states before are not known, nothing is said of a parameter."""
    with np.errstate(all="ignore"):  # what is not finite comes out as such, and fails
        return _changes(
            seen, gradient, rule, tolerance, sizes or {name: size_of(gradient, name) for name in gradient}
        )


def _changes(
    seen: Observation, gradient: Tensors, rule: Rule, tolerance: float, sizes: Mapping[str, float]
) -> list[Change]:
    assert seen.after is not None
    found = []
    scale = rule.scale(gradient)
    for name in reversed(list(gradient)):
        known = _update(seen, name, rule)
        if known is None:
            continue
        update, doubt = known
        fresh = scale * _wide(gradient[name])
        off = tolerance * scale * sizes[name] * (1 if scale == 1 else 2)
        expected, moved = update.outcome(fresh)
        slopes, slope = update.slopes(fresh, scale * sizes[name])
        terms, (spread, step_spread) = update.magnitudes(fresh), update.rounded_numbers(fresh)
        weight, after = update.weight, _wide(seen.after.parameter[name])
        tiny = SMALLEST * math.sqrt(weight.size)
        carried = float(rule.optimizer.get("momentum", 0.0)) * norm(doubt)
        allowed = off + tiny + carried
        for state in rule.states:
            rounding = norm(4 * UNIT * (terms[state] + np.abs(expected[state])) + spread[state])
            limit = float(np.max(slopes[state], initial=0.0)) * off + rounding + carried + tiny
            if state not in update.shown:
                allowed += rounding
                continue
            error = norm(update.shown[state] - expected[state])
            idle = update.without_gradient(state)
            size = norm(expected[state] - idle)
            found.append(Change(state, name, error, limit, size))
        wrong = after - weight + moved
        sums = UNIT * (np.abs(weight) + np.abs(after) + 8 * np.abs(moved)) + step_spread
        if slope.size and np.min(slope) > 0:  # in gradients
            limit = allowed + norm(sums / slope) + SMALLEST * norm(1 / slope)
            found.append(Change("parameter", name, norm(wrong / slope), limit, norm(moved / slope)))
        else:
            found.append(Change("parameter", name, norm(wrong), norm(sums) + tiny, norm(moved)))
    return found


def implied_gradient(seen: Observation, name: str, rule: Rule, gradient: Tensors) -> Doubles | None:
    """The gradient that a step must have used, before clipping; `gradient`: the judge's. None where its
    states are not known."""
    known = _update(seen, name, rule)
    if known is None:
        return None
    with np.errstate(all="ignore"):
        return _implied(seen, name, rule, gradient, known[0])


def _implied(seen: Observation, name: str, rule: Rule, gradient: Tensors, update: _Update) -> Doubles | None:
    assert seen.after is not None
    scale = rule.scale(gradient)
    fresh = scale * _wide(gradient[name])
    expected, moved = update.outcome(fresh)
    slopes, slope = update.slopes(fresh, scale * size_of(gradient, name))
    for state in rule.states:
        # What is linear in the gradient tells it in every element alike.
        if state in update.shown and np.ptp(slopes[state]) <= 1e-6 * np.max(slopes[state]):
            return (fresh + (update.shown[state] - expected[state]) / slopes[state]) / scale
    if not np.min(slope, initial=math.inf) > 0:
        return None
    wrong = _wide(seen.after.parameter[name]) - update.weight + moved
    return (fresh - wrong / slope) / scale


def lacking(seen: Observation, rule: Rule) -> str | None:
    """The name of a state without which a step of this rule cannot be judged, if the contender hides it."""
    if rule.may_hide:
        return None
    for moment in (None if seen.fresh else seen.before, seen.after):
        for name in moment.parameter if moment else ():
            for state in rule.states:
                if f"{name}.{state}" not in (moment.state if moment else {}):
                    return f"{name}.{state}"
    return None


def _update(seen: Observation, name: str, rule: Rule) -> tuple[_Update, Doubles] | None:
    """The step of a parameter, and how far rounding may have moved its velocity before it."""
    assert seen.after is not None
    rule = rule.for_parameter(name)
    weight = _wide(seen.before.parameter[name])
    before = {state.name: np.zeros_like(weight) for state in rule.kind.states}
    doubt = np.zeros_like(weight)
    if not seen.fresh and rule.states:
        shown = _states(seen.before, name, rule)
        if len(shown) == len(rule.states):
            before = shown
        elif seen.earlier is None or not rule.may_hide or not rule.rate(seen.step - 1):
            return None
        else:
            rate, earlier = rule.rate(seen.step - 1), _wide(seen.earlier.parameter[name])
            before = {"velocity": (earlier - weight) / rate}
            doubt = UNIT * (np.abs(weight) + np.abs(earlier)) / rate
    return _Update(rule, rule.numbers(seen.step), weight, before, _states(seen.after, name, rule)), doubt


def _states(look: Look, name: str, rule: Rule) -> dict[str, Doubles]:
    named = {state: look.state.get(f"{name}.{state}") for state in rule.states}
    return {state: _wide(values) for state, values in named.items() if values is not None}


def _wide(array: NDArray[Any]) -> Doubles:
    return np.asarray(array, np.float64)


def norm(array: Doubles) -> float:
    """Euclidean. np.linalg.norm would wake the threads of a BLAS for it."""
    return math.sqrt(inner(array, array))


def inner(one: Doubles, other: Doubles) -> float:
    """The sum of products, element by element, without a BLAS as well."""
    return float(np.einsum("i,i->", np.ravel(one), np.ravel(other)))
