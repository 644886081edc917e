"""The update rule of an optimizer, in double precision: what a step makes of a parameter, of its states, and
of errors in its gradient and its numbers.

What each rule computes stands in optimizers/rules.py, once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial import npy
from timetrial.agreement.sizes import UNIT, Doubles, norm, pieces, wide
from timetrial.errors import InputError
from timetrial.optimizers import OPTIMIZERS, Optimizer, kept_states

AS_IS = ("t", "nesterov", "rate_inside")  # numbers of a step that are exact in every type

Tensors = Mapping[str, NDArray[Any]]


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
        return cls(optimizer, npy.load(file) if file else np.empty(0), undecayed)

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
        return self.is_linear and not any(self.optimizer.get(one) for one in options)

    @property
    def is_linear(self) -> bool:
        """Whether states and step are sums of multiples of the gradient, the weight and the states before."""
        return bool(self.optimizer["name"] == "sgd")

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
        size = math.sqrt(sum(norm(tensor) ** 2 for tensor in gradient.values()))
        return min(1.0, limit / size) if size > 0 else 1.0

    def fed(self, gradient: Doubles, weight: Doubles) -> Doubles:
        """The `g` of the formulas."""
        return gradient if self.decoupled else gradient + self.decay * weight


@dataclass(frozen=True)
class Update:
    """One step of one parameter, or of a piece of it: values one behind the other. `shown`: states behind it
    that are known, that later formulas start from."""

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
        absolute = Update(self.rule, self.numbers, self.weight, before, self.shown)
        return absolute._computed(fed, self.numbers)[0]

    def slopes(self, gradient: Doubles, typical: float, away: float) -> tuple[dict[str, Doubles], Doubles]:
        """By how much of a gradient's error each state is off, and the step. States are at most quadratic in
        the gradient, so the difference of two values tells it exactly; but not that of values which a
        vanishing gradient does not move. `typical`: of the whole gradient's values. `away`: by so much
        farther from 0 they are taken. Those of a linear rule are one number each, seen as so many."""
        if self.rule.is_linear:
            zero, one = np.zeros(1), np.ones(1)
            at_zero = replace(
                self,
                weight=zero,
                before=dict.fromkeys(self.before, zero),
                shown=dict.fromkeys(self.shown, zero),
            )
            made, moved = at_zero.outcome(one)
            shape = gradient.shape
            return {name: _as_many(values, shape) for name, values in made.items()}, _as_many(moved, shape)
        at = gradient + np.copysign(away, gradient)
        width = 1e-3 * (np.abs(at) + (typical or 1.0))
        above, below = self.outcome(at + width), self.outcome(at - width)
        states = {name: np.abs(above[0][name] - below[0][name]) / (2 * width) for name in above[0]}
        return states, np.abs(above[1] - below[1]) / (2 * width)

    def rounded_numbers(
        self, gradient: Doubles, own: Mapping[str, Doubles], moved: Doubles
    ) -> tuple[dict[str, Doubles], Doubles]:
        """By how much the states and the step change where each number of the rule is off by u of itself.
        `own`, `moved`: the outcome."""
        fed = self.rule.fed(gradient, self.weight)
        states, step = {name: np.zeros_like(fed) for name in own}, np.zeros_like(fed)
        for key, value in self.numbers.items():
            if key in AS_IS or not value:
                continue
            others, turned = self._computed(fed, {**self.numbers, key: value * (1 - UNIT)})
            step += 4 * np.abs(turned - moved)
            for name, values in others.items():
                states[name] += np.abs(values - own[name])
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


def _as_many(slope: Doubles, shape: tuple[int, ...]) -> Doubles:
    return np.broadcast_to(np.abs(slope), shape)


class Walk:
    """Parameters on their way from states of 0, step by step."""

    def __init__(self, parameters: Tensors, rule: Rule):
        self.parameters = {name: np.array(tensor, np.float64) for name, tensor in parameters.items()}
        self._states = {
            name: {state.name: np.zeros_like(tensor) for state in rule.kind.states}
            for name, tensor in self.parameters.items()
        }
        self._rule = rule
        self._steps = 0

    def step(self, gradient: Tensors) -> None:
        """One update, in place."""
        scale, numbers = self._rule.scale(gradient), self._rule.numbers(self._steps)
        for name, tensor in self.parameters.items():
            rule, weight, raw = self._rule.for_parameter(name), tensor.reshape(-1), np.ravel(gradient[name])
            states = {state: values.reshape(-1) for state, values in self._states[name].items()}
            for piece in pieces(weight.size):
                before = {state: values[piece] for state, values in states.items()}
                update = Update(rule, numbers, weight[piece], before, {})
                after, moved = update.outcome(scale * wide(raw[piece]))
                weight[piece] -= moved
                for state, values in after.items():
                    states[state][piece] = values
        self._steps += 1
