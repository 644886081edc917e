"""Optimizers that a workload may name, with their keys, defaults and ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from timetrial.errors import OWN_STEP, InputError, nearest


@dataclass(frozen=True)
class Key:
    """A number of an optimizer: its default (None: must be given) and the range it must lie in."""

    default: float | None
    range: str
    low: float
    below: float = math.inf
    low_allowed: bool = True

    def admits(self, value: float) -> bool:
        """Whether a value lies in the range."""
        return (value >= self.low if self.low_allowed else value > self.low) and value < self.below


OPTIMIZERS: dict[str, dict[str, Key]] = {
    # backend.h has the formula.
    "sgd": {
        "learning_rate": Key(None, "above 0", 0.0, low_allowed=False),
        "momentum": Key(0.0, "at least 0 and below 1", 0.0, below=1.0),
        "weight_decay": Key(0.0, "at least 0", 0.0),
    },
}


def check_optimizer(optimizer: object) -> dict[str, Any]:
    """The complete optimizer: every key present, every number a float. Errors name key, value and range."""
    if not isinstance(optimizer, Mapping):
        raise InputError(
            f"The optimizer is {optimizer!r}; expected a table such as "
            '{ name = "sgd", learning_rate = 0.02, momentum = 0.9 }.'
        )
    name = optimizer.get("name")
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise InputError(f"There is no optimizer {name!r}.{nearest(str(name), OPTIMIZERS)}{OWN_STEP}")
    keys = OPTIMIZERS[name]
    for key in optimizer:
        if key != "name" and key not in keys:
            raise InputError(f"The optimizer '{name}' has no '{key}'.{nearest(str(key), keys)}")
    complete: dict[str, Any] = {"name": name}
    for key, rule in keys.items():
        value = optimizer.get(key, rule.default)
        if value is None:
            raise InputError(f"The optimizer '{name}' needs a '{key}' ({rule.range}).")
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not rule.admits(float(value)):
            raise InputError(
                f"'{key}' of the optimizer '{name}' is {value!r}; expected a number {rule.range}."
            )
        complete[key] = float(value)
    return complete
