"""Optimizers that a workload may name: each rule once, as a formula in double, with its source, its keys and
the states that it keeps. The judge computes with these functions; `cpp/include/timetrial/optimizer.hpp` has
the same names for native backends, and the reference prints the words.

In every rule `g` is the gradient, clipped if that was asked, plus `weight_decay * w` unless the decay is
decoupled (then the weight loses `rate * weight_decay * w` beside the rule's own step), `rate` that of the
step (schedules.py), and `t` the number of the step since the beginning, from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.errors import OWN_STEP, InputError, nearest
from timetrial.optimizers.schedules import check_schedule

Doubles = NDArray[np.float64]
States = Mapping[str, Doubles]
Numbers = Mapping[str, float]  # the rule's keys and flags, "rate" and "t"


@dataclass(frozen=True)
class Key:
    """A number of an optimizer: its default (None: must be given) and the range it must lie in."""

    default: float | None
    range: str
    low: float
    words: str
    below: float = math.inf
    low_allowed: bool = True

    def admits(self, value: float) -> bool:
        """Whether a value lies in the range."""
        return (value >= self.low if self.low_allowed else value > self.low) and value < self.below


@dataclass(frozen=True)
class State:
    """What is kept of a parameter from step to step, as the tensor "<parameter>.<name>": 0 at first. `after`:
    its value behind a step, of `g`, all states before, and those listed before it behind the step."""

    name: str
    after: Callable[[Doubles, States, States, Numbers], Doubles]


@dataclass(frozen=True)
class Optimizer:
    """A rule. `step`: what is taken from the weight, of `g`, the states behind the step, and the numbers.
    `flags`: options that are on or off. `decoupled`: whether its decay always is."""

    formula: str
    source: str
    keys: Mapping[str, Key]
    states: Sequence[State]
    step: Callable[[Doubles, States, States, Numbers], Doubles]
    flags: Mapping[str, str] = field(default_factory=dict)
    decoupled: bool = False


def _root_step(g: Doubles, square: Doubles, n: Numbers) -> Doubles:
    return n["rate"] * g / (np.sqrt(square) + n["epsilon"])


def _velocity(g: Doubles, before: States, _after: States, n: Numbers) -> Doubles:
    return n["momentum"] * before["velocity"] + (n["rate"] * g if n.get("rate_inside") else g)


def _sgd_step(g: Doubles, _before: States, after: States, n: Numbers) -> Doubles:
    fresh = n["rate"] * g if n.get("rate_inside") else g
    way = fresh + n["momentum"] * after["velocity"] if n.get("nesterov") else after["velocity"]
    return way if n.get("rate_inside") else n["rate"] * way


def _adam_step(_g: Doubles, _before: States, after: States, n: Numbers) -> Doubles:
    corrected: float = n["rate"] * math.sqrt(1 - n["beta2"] ** n["t"]) / (1 - n["beta1"] ** n["t"])
    divisor: Doubles = np.sqrt(after["second_moment"]) + n["epsilon"]
    return corrected * after["first_moment"] / divisor


def _adadelta_move(g: Doubles, before: States, after: States, n: Numbers) -> Doubles:
    epsilon = n["epsilon"]
    divisor: Doubles = np.sqrt(after["second_moment"] + epsilon)
    root: Doubles = np.sqrt(before["squared_update"] + epsilon)
    return root / divisor * g


def _kept_square(key: str) -> Callable[[Doubles, States, States, Numbers], Doubles]:
    return lambda g, before, _after, n: n[key] * before["second_moment"] + (1 - n[key]) * g * g


_RATE = Key(None, "above 0", 0.0, "the rate of every step, or of the first of a schedule", low_allowed=False)
_DECAY = "how much of the weight is added to its gradient"
_SHRINK = "how much of the weight goes with each step, times the rate"
_EPSILON = "keeps the divisor from 0"
_DECOUPLED = "whether the decay is taken from the weight itself, not added to the gradient"
_SQUARES = "how much of the mean of squares is kept"


def _share(default: float, words: str) -> Key:
    return Key(default, "at least 0 and below 1", 0.0, words, below=1.0)


def _from_zero(default: float, words: str) -> Key:
    return Key(default, "at least 0", 0.0, words)


_ADAM_STATES = (
    State(
        "first_moment",
        lambda g, before, _after, n: n["beta1"] * before["first_moment"] + (1 - n["beta1"]) * g,
    ),
    State("second_moment", _kept_square("beta2")),
)


def _adam(formula: str, source: str, decay: Key, *, decoupled: bool) -> Optimizer:
    keys = {
        "learning_rate": _RATE,
        "beta1": _share(0.9, "how much of the mean of gradients is kept"),
        "beta2": _share(0.999, _SQUARES),
        "epsilon": Key(1e-8, "above 0", 0.0, _EPSILON, low_allowed=False),
        "weight_decay": decay,
    }
    return Optimizer(formula, source, keys, _ADAM_STATES, _adam_step, decoupled=decoupled)


_ADAM = (
    "m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  "
    "w = w - rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)"
)

OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer(
        "v = momentum v + g;  w = w - rate v.  nesterov: w = w - rate (g + momentum v).  "
        "rate_inside: v = momentum v + rate g;  w = w - v",
        "Sutskever et al. 2013, as torch.optim.SGD writes it, without dampening; rate_inside: as they do",
        {
            "learning_rate": _RATE,
            "momentum": _share(0.0, "how much of the last change is kept"),
            "weight_decay": _from_zero(0.0, _DECAY),
        },
        (State("velocity", _velocity),),
        _sgd_step,
        flags={
            "nesterov": "whether the step looks ahead along the velocity",
            "decoupled": _DECOUPLED,
            "rate_inside": "whether the velocity is made of rate times gradient: it then keeps the old rate "
            "where a schedule changes it",
        },
    ),
    # Epsilon beside the root of v as it is, "epsilon hat" (end of section 2 of the paper): who adds
    # it to the corrected root can be given another one in each step, those of this form cannot.
    "adam": _adam(_ADAM, "Kingma, Ba 2015, with epsilon hat", _from_zero(0.0, _DECAY), decoupled=False),
    "adamw": _adam(
        _ADAM + " - rate weight_decay w",
        "Loshchilov, Hutter 2019, with epsilon hat",
        _from_zero(0.01, _SHRINK),
        decoupled=True,
    ),
    "rmsprop": Optimizer(
        "s = rho s + (1 - rho) g^2;  w = w - rate g / (sqrt(s) + epsilon)",
        "Tieleman, Hinton 2012, as torch.optim.RMSprop writes it",
        {
            "learning_rate": _RATE,
            "rho": _share(0.9, _SQUARES),
            "epsilon": Key(1e-8, "above 0", 0.0, _EPSILON, low_allowed=False),
            "weight_decay": _from_zero(0.0, _DECAY),
        },
        (State("second_moment", _kept_square("rho")),),
        lambda g, _before, after, n: _root_step(g, after["second_moment"], n),
    ),
    "adagrad": Optimizer(
        "s = s + g^2;  w = w - rate g / (sqrt(s) + epsilon)",
        "Duchi, Hazan, Singer 2011, as torch.optim.Adagrad writes it",
        {
            "learning_rate": _RATE,
            "epsilon": Key(1e-8, "above 0", 0.0, _EPSILON, low_allowed=False),
            "weight_decay": _from_zero(0.0, _DECAY),
        },
        (State("squared_sum", lambda g, before, _after, _n: before["squared_sum"] + g * g),),
        lambda g, _before, after, n: _root_step(g, after["squared_sum"], n),
    ),
    "adadelta": Optimizer(
        "s = rho s + (1 - rho) g^2;  x = sqrt(u + epsilon) / sqrt(s + epsilon) g;  "
        "u = rho u + (1 - rho) x^2;  w = w - rate x",
        "Zeiler 2012; a rate of 1 is the paper's",
        {
            "learning_rate": Key(1.0, "above 0", 0.0, _RATE.words, low_allowed=False),
            "rho": _share(0.9, _SQUARES),
            "epsilon": Key(1e-6, "above 0", 0.0, _EPSILON, low_allowed=False),
            "weight_decay": _from_zero(0.0, _DECAY),
        },
        (
            State("second_moment", _kept_square("rho")),
            State(
                "squared_update",
                lambda g, before, after, n: (
                    n["rho"] * before["squared_update"]
                    + (1 - n["rho"]) * _adadelta_move(g, before, after, n) ** 2
                ),
            ),
        ),
        lambda g, before, after, n: n["rate"] * _adadelta_move(g, before, after, n),
    ),
}

CLIP_NORM = Key(None, "above 0", 0.0, "the norm of all gradients together is at most this", low_allowed=False)


def kept_states(optimizer: Mapping[str, Any]) -> list[str]:
    """The names of the states that a rule keeps with these numbers: SGD without momentum keeps none."""
    rule = OPTIMIZERS[optimizer["name"]]
    if "momentum" in rule.keys and not optimizer.get("momentum"):
        return []
    return [state.name for state in rule.states]


def check_optimizer(optimizer: object) -> dict[str, Any]:
    """The complete optimizer: every key of its rule, every number a float; of what may be left out (flags,
    `clip_norm`, `schedule`) what is on. Errors name key, value and range."""
    if not isinstance(optimizer, Mapping):
        raise InputError(
            f"The optimizer is {optimizer!r}; expected a table such as "
            '{ name = "sgd", learning_rate = 0.02, momentum = 0.9 }.'
        )
    name = optimizer.get("name")
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise InputError(f"There is no optimizer {name!r}.{nearest(str(name), OPTIMIZERS)}{OWN_STEP}")
    rule = OPTIMIZERS[name]
    known = (*rule.keys, *rule.flags, "clip_norm", "schedule")
    for key in optimizer:
        if key != "name" and key not in known:
            raise InputError(f"The optimizer '{name}' has no '{key}'.{nearest(str(key), known)}")
    complete: dict[str, Any] = {"name": name}
    for key, limits in rule.keys.items():
        value = optimizer.get(key, limits.default)
        if value is None:
            raise InputError(f"The optimizer '{name}' needs a '{key}' ({limits.range}).")
        complete[key] = _number(name, key, value, limits)
    for flag in rule.flags:
        value = optimizer.get(flag, False)
        if not isinstance(value, bool):
            raise InputError(f"'{flag}' of the optimizer '{name}' is {value!r}; expected true or false.")
        if value:
            complete[flag] = True
    if complete.get("nesterov") and not complete["momentum"]:
        raise InputError(f"'nesterov' of the optimizer '{name}' needs a 'momentum' above 0.")
    if "clip_norm" in optimizer:
        complete["clip_norm"] = _number(name, "clip_norm", optimizer["clip_norm"], CLIP_NORM)
    if "schedule" in optimizer:
        complete["schedule"] = check_schedule(optimizer["schedule"])
    return complete


def options_of(optimizer: Mapping[str, Any]) -> list[str]:
    """What a contender must have beside the rule: the flags that are on, `clip_norm` and `schedule`."""
    possible = (*OPTIMIZERS[optimizer["name"]].flags, "clip_norm", "schedule")
    return [option for option in possible if option in optimizer]


def optimizer_keys() -> dict[str, str]:
    """Every key that an optimizer may have, with the words of the reference."""
    owners: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for name, rule in OPTIMIZERS.items():
        said = {
            **{key: f"{limits.words}: {limits.range}" for key, limits in rule.keys.items()},
            **{flag: f"{text}: `true` or `false`" for flag, text in rule.flags.items()},
        }
        for key, text in said.items():
            owners.setdefault(key, []).append(name)
            words.setdefault(key, text)
    found = {
        "name": "the rule: " + "; ".join(f"`{name}`: `{rule.formula}`" for name, rule in OPTIMIZERS.items())
    }
    for key, text in words.items():
        of = (
            ""
            if len(owners[key]) == len(OPTIMIZERS)
            else f" ({', '.join(f'`{one}`' for one in owners[key])})"
        )
        found[key] = text + of
    return {**found, "clip_norm": f"{CLIP_NORM.words}: {CLIP_NORM.range}; unless given, none is clipped"}


def flat_keys(optimizer: Mapping[str, Any]) -> dict[str, Any]:
    """As a user writes them one by one: "optimizer.learning_rate", "optimizer.schedule.name"."""
    found: dict[str, Any] = {}
    for key, value in optimizer.items():
        inner = value if isinstance(value, Mapping) else None
        if inner is None:
            found[f"optimizer.{key}"] = value
        else:
            found.update({f"optimizer.{key}.{one}": number for one, number in inner.items()})
    return found


def _number(name: str, key: str, value: object, limits: Key) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not limits.admits(float(value)):
        raise InputError(f"'{key}' of the optimizer '{name}' is {value!r}; expected a number {limits.range}.")
    return float(value)
