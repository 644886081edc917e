"""How weights follow from gradients: update rules and schedules of the rate, as data and formulas."""

from timetrial.optimizers.rules import (
    OPTIMIZERS,
    Optimizer,
    check_optimizer,
    flat_keys,
    kept_states,
    optimizer_keys,
    options_of,
)
from timetrial.optimizers.schedules import SCHEDULES, rates, schedule_keys

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "Optimizer",
    "check_optimizer",
    "flat_keys",
    "kept_states",
    "optimizer_keys",
    "options_of",
    "rates",
    "schedule_keys",
]
