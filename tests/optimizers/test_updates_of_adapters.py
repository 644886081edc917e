"""The formulas that adapters share are those of the judge, rule by rule, option by option."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.update import Rule, Walk
from timetrial.optimizers import OPTIMIZERS, check_optimizer, options_of, rates

CASES: list[dict[str, Any]] = [
    {"name": "sgd"},
    {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01, "decoupled": True},
    {"name": "sgd", "momentum": 0.9, "nesterov": True, "schedule": {"name": "cosine"}},
    {"name": "sgd", "momentum": 0.9, "rate_inside": True, "schedule": {"name": "cosine"}},
    {"name": "sgd", "momentum": 0.9, "rate_inside": True, "nesterov": True},
    *({"name": name, "weight_decay": 0.1} for name in OPTIMIZERS if name != "sgd"),
    {"name": "adamw", "weight_decay": 0.1, "schedule": {"name": "exponential", "factor": 0.5, "every": 2}},
]
STEPS = 6
Runtime = Callable[[str], ModuleType]


def _job(optimizer: dict[str, Any]) -> SimpleNamespace:
    """What an adapter is given of it."""
    complete = check_optimizer({"learning_rate": 0.01, **optimizer})
    schedule = complete.pop("schedule", None)
    of_steps = rates(schedule, complete["learning_rate"], STEPS) if schedule else None

    def rate(step: int) -> float:
        return complete["learning_rate"] if of_steps is None else float(of_steps[step])

    return SimpleNamespace(optimizer=complete, rates=of_steps, rate=rate)


@pytest.mark.parametrize("optimizer", CASES, ids=str)
def test_they_lead_where_the_judge_goes(runtime: Runtime, optimizer: dict[str, Any]) -> None:
    job = _job(optimizer)
    update = runtime("timetrial_updates").Update(job, np.sqrt)
    random = np.random.default_rng(1)
    weight, gradients = random.normal(size=(3, 4)), random.normal(size=(STEPS, 3, 4))
    rule = Rule(job.optimizer, np.empty(0) if job.rates is None else job.rates)
    walk = Walk({"w": weight}, rule)
    for gradient in gradients:
        walk.step({"w": gradient})
    kept = {state: np.zeros_like(weight) for state in update.states}
    assert list(kept) == rule.states
    for step, gradient in enumerate(gradients):
        rate, shrink = update.sizes(step if update.changes else 0)
        change, kept = update.step(update.decayed(gradient, weight), kept, rate)
        weight = weight - change - shrink * weight
    np.testing.assert_allclose(weight, walk.parameters["w"], rtol=1e-12)


def test_they_are_all_that_a_workload_may_name(runtime: Runtime) -> None:
    flags = [flag for rule in OPTIMIZERS.values() for flag in rule.flags]
    words = runtime("timetrial_updates").OPTIMIZERS
    assert set(words) == {*OPTIMIZERS, *flags, "schedule", "clip_norm"}
    assert set(options_of({"name": "sgd", "nesterov": True})) <= set(words)
