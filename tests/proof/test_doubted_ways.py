"""The first loss of a way in a network whose images depend on each other: what its last places make of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32
from timetrial.agreement.update import Rule
from timetrial.proof.judge import Answer
from timetrial.proof.ways import Guide, Way

WEIGHTS = np.ones(8)


class Magnifier:
    """Its loss is 1, and so many `times` more off than its weights are."""

    def __init__(self, times: float):
        self._times = times

    def gradient(self, parameters: Any, batch: Any, *, activations: bool = False) -> Answer:
        off = float(np.max(np.abs(parameters["weight"] - WEIGHTS)))
        return Answer(1 + self._times * off, {"weight": np.zeros(8)}, {}, {"mean": np.zeros(1)})


def way(times: float, losses: list[float], states: Any) -> Way:
    batches: Any = SimpleNamespace(batch=lambda stream, row: {})
    judge: Any = Magnifier(times)
    rule = Rule.of({"name": "sgd", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0})
    return Guide(judge, batches, rule, {"weight": WEIGHTS}, states=states).way_of("train", losses)


@pytest.mark.parametrize(
    ("times", "off", "is_within"),
    [(100.0, 7e-6, True), (100.0, 1e-3, False), (0.0, 7e-6, False), (0.0, 4e-6, True)],
)
def test_a_first_loss_may_be_off_by_what_last_places_make_of_it(
    times: float, off: float, *, is_within: bool
) -> None:
    """ResNet-50 in oneDNN: off by 7.3e-6 behind 53 normalizations of four images."""
    found = way(times, [1 + off, 1.0], {"mean": np.zeros(1)})
    assert (off <= F32.loss * found.growth(0)) is is_within


def test_where_no_image_depends_on_another_last_places_excuse_nothing() -> None:
    found = way(100.0, [1 + 7e-6, 1.0], None)
    assert found.growth(0) == 1
    assert found.growth(1) == GROWTH
