"""The first loss of a way in a network whose images depend on each other: what its last places make of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32
from timetrial.agreement.rounding import Doubt
from timetrial.agreement.update import Rule
from timetrial.proof.judge import Answer
from timetrial.proof.ways import MOST_DOUBT, Guide, Way

WEIGHTS = np.ones(8)


class Magnifier:
    """Its loss is 1, and so many `times` more off than its weights are."""

    def __init__(self, times: float):
        self._times = times

    def gradient(self, parameters: Any, batch: Any, *, activations: bool = False) -> Answer:
        off = float(np.max(np.abs(parameters["weight"] - WEIGHTS)))
        return Answer(1 + self._times * off, {"weight": np.zeros(8)}, {}, {"mean": np.zeros(1)})


def way(times: float, losses: list[float], states: Any, doubted: Doubt | None = None) -> Way:
    batches: Any = SimpleNamespace(batch=lambda stream, row: {})
    judge: Any = Magnifier(times)
    rule = Rule.of({"name": "sgd", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0})
    guide = Guide(
        judge, batches, rule, {"weight": WEIGHTS}, states=states, doubt_of=lambda parameters, batch: doubted
    )
    return guide.way_of("train", losses)


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


@pytest.mark.parametrize(
    ("doubted", "times"), [(None, 1), (0.0, 1), (5e-6, 1), (1e-5, 1), (5e-5, 5), (4e-4, 40)]
)
def test_the_first_is_doubted_as_much_as_all_rounding_makes_of_a_loss(
    doubted: float | None, times: float
) -> None:
    """Shifted parameters of ResNet-50 alone say less than its normalizations' own rounding."""
    doubt = None if doubted is None else Doubt(loss=doubted)
    plain, found = (way(10.0, [1.1, 1.1], {"mean": np.zeros(1)}, one) for one in (None, doubt))
    assert plain.doubts[0] == pytest.approx(1e-5, rel=0.2)
    assert found.doubts[0] == pytest.approx(times * plain.doubts[0], rel=0.25)
    assert found.doubts[1:] == plain.doubts[1:]


def test_no_other_loss_and_no_first_that_agrees_is_doubted_more() -> None:
    plain, found = (way(10.0, [1.0, 1.1], {"mean": np.zeros(1)}, one) for one in (None, Doubt(loss=4e-4)))
    assert found.doubts == plain.doubts


def test_the_first_is_always_compared_and_to_one_percent() -> None:
    found = way(10.0, [1.1, 1.1], {"mean": np.zeros(1)}, Doubt(loss=1.0))
    assert found.growth(0) * F32.loss == pytest.approx(MOST_DOUBT)
    chaotic = way(1e5, [1.1, 1.1], {"mean": np.zeros(1)}, Doubt(loss=1.0))
    assert chaotic.says(2) == 1
    assert chaotic.growth(0) * F32.loss == pytest.approx(MOST_DOUBT)


def test_where_no_image_depends_on_another_last_places_excuse_nothing() -> None:
    found = way(100.0, [1 + 7e-6, 1.0], None)
    assert found.growth(0) == 1
    assert found.growth(1) == GROWTH
