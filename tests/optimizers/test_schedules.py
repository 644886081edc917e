"""Optimizers and schedules as a user writes them: complete, or refused with words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from timetrial.errors import InputError
from timetrial.optimizers import OPTIMIZERS, check_optimizer, flat_keys, options_of, rates
from timetrial.optimizers.schedules import check_schedule

SGD = {"name": "sgd", "learning_rate": 0.1}


def test_rates_by_hand() -> None:
    def of(name: str, steps: int = 4, **keys: Any) -> list[float]:
        return [float(one) for one in rates(check_schedule({"name": name, **keys}), 2.0, steps)]

    assert of("constant") == [2, 2, 2, 2]
    assert of("step", factor=0.5, every=2) == [2, 2, 1, 1]
    assert of("inverse", decay=1) == pytest.approx([2, 1, 2 / 3, 0.5])
    assert of("exponential", factor=0.25, every=2) == pytest.approx([2, 1, 0.5, 0.25])
    assert of("cosine") == pytest.approx([2, 1 + np.sqrt(0.5), 1, 1 - np.sqrt(0.5)])
    assert of("cosine", floor=0.5, steps=8)[4] == pytest.approx(1.5)
    assert of("constant", warmup=2) == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("cosine", "expected a table such as"),
        ({"name": "cosin"}, "no schedule 'cosin'. Did you mean 'cosine'"),
        ({"name": "step", "every": 3}, "needs a 'factor'"),
        ({"name": "cosine", "factor": 0.5}, "'cosine' has no 'factor'"),
        ({"name": "step", "every": 2.5, "factor": 0.5}, "'every' .* is 2.5; expected a whole number from 1"),
        (
            {"name": "step", "every": 2, "factor": 1.5},
            "'factor' .* is 1.5; expected a number from 1e-06 to 1",
        ),
    ],
)
def test_wrong_schedules(schedule: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_optimizer({**SGD, "schedule": schedule})


def test_a_schedule_that_is_shorter_than_the_run() -> None:
    with pytest.raises(
        InputError, match=r"has 10 steps, but the run has 20. Leave optimizer.schedule.steps out"
    ):
        rates(check_schedule({"name": "cosine", "steps": 10}), 0.1, 20)
    with pytest.raises(InputError, match=r"'warmup' .* is 20, but there are 20 steps"):
        rates(check_schedule({"name": "cosine", "warmup": 20}), 0.1, 20)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ({**SGD, "beta1": 0.9}, "'sgd' has no 'beta1'"),
        ({"name": "adam", "learning_rate": 0.1, "momentum": 0.9}, "'adam' has no 'momentum'"),
        ({**SGD, "nesterov": 1}, "'nesterov' .* is 1; expected true or false"),
        ({**SGD, "nesterov": True}, "'nesterov' of the optimizer 'sgd' needs a 'momentum' above 0"),
        ({**SGD, "clip_norm": 0}, "'clip_norm' .* is 0; expected a number above 0"),
    ],
)
def test_wrong_options(optimizer: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_optimizer(optimizer)


def test_what_is_off_is_not_there() -> None:
    """So the SGD of old records is the SGD of new ones."""
    assert check_optimizer({**SGD, "nesterov": False}) == {**SGD, "momentum": 0.0, "weight_decay": 0.0}
    given = {**SGD, "momentum": 0.9, "nesterov": True, "clip_norm": 1, "schedule": {"name": "cosine"}}
    complete = check_optimizer(given)
    assert options_of(complete) == ["nesterov", "clip_norm", "schedule"]
    assert flat_keys(complete)["optimizer.schedule.name"] == "cosine"
    assert check_optimizer(complete) == complete


def test_a_name_is_enough_with_a_rate() -> None:
    for name in OPTIMIZERS:
        assert check_optimizer({"name": name, "learning_rate": 0.1})["name"] == name
