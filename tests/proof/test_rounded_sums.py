"""What a normalization takes away on the way back are two means. In f32 they are off by what their sums are
off by, the same in all of a channel; behind a mean over the image little else is left of the gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_coupled import N, Stage

from timetrial.agreement.statistics import PLACES, sum_places
from timetrial.proof.judge import LARGE, SMALL, JudgingBackend
from timetrial.questions.observed import Tensors

SIDE = 30
NODES: list[dict[str, Any]] = [
    {"name": "conv", "kind": "conv2d", "attributes": {"channels": 4, "kernel": 3}},
    {"name": "bn", "kind": "batch_norm"},
    {"name": "relu", "kind": "relu"},
    {"name": "mean", "kind": "global_avg_pool2d"},
    {"name": "flat", "kind": "flatten"},
    {"name": "fc", "kind": "dense", "attributes": {"units": 4}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
]
CHANNELS = 4


def stage_of(judge: JudgingBackend = SMALL) -> Stage:
    return Stage(nodes=NODES, judge=judge, side=SIDE)


def with_sums_off(stage: Stage, off: float) -> Tensors:
    """The gradient of whoever sums up so badly."""
    sums = {"bn.bias": np.full(CHANNELS, off), "bn.weight": np.full(CHANNELS, -off)}
    return stage.witness.gradient(stage.images, sums).gradient


@pytest.mark.parametrize("judge", [SMALL, LARGE], ids=lambda one: one.name)
def test_what_is_taken_away_is_off_by_the_sum(judge: JudgingBackend) -> None:
    stage, off = stage_of(judge), 1e-3
    own = with_sums_off(stage, off)
    moved = {name: own[name] - values for name, values in stage.gradient.items()}
    # The gradient of the convolution's bias is what is left of the mean: nothing, but for the error.
    values = stage.activation["conv"]
    slope = 1 / np.sqrt(values.var(axis=(0, 2, 3)) + 1e-5)
    expected = -stage.parameters["bn.weight"] * slope * moved["bn.bias"]
    np.testing.assert_allclose(moved["conv.bias"], expected, rtol=1e-6)
    # Of each sum by so much of the sizes of its terms, which are no smaller than the sum.
    for name, sign in (("bn.bias", 1), ("bn.weight", -1)):
        assert np.all(sign * moved[name] >= off * np.abs(stage.gradient[name]) * (1 - 1e-9))
    assert not np.any(moved["fc.weight"])


def test_both_judges_mean_the_same() -> None:
    one, other = (with_sums_off(stage_of(judge), 1e-3) for judge in (SMALL, LARGE))
    for name, values in one.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_nudge_is_gone_when_nobody_asks_for_it() -> None:
    stage = stage_of()
    with_sums_off(stage, 1e-3)
    again = stage.witness.gradient(stage.images, {}).gradient
    assert all(np.array_equal(again[name], values) for name, values in stage.gradient.items())


@pytest.mark.parametrize(("share", "status"), [(0.5, "passed"), (40.0, "failed")])
def test_sums_in_single_precision_pass_and_worse_ones_do_not(
    tmp_path: Path, share: float, status: str
) -> None:
    stage = stage_of()
    contender = with_sums_off(stage, share * sum_places(N, (SIDE - 2) ** 2))
    wrong = stage.judged(tmp_path, stage.gradient | {"conv.weight": contender["conv.weight"]})
    assert wrong.status == status, wrong.reason
    if status == "failed":
        assert "conv.weight" in str(wrong.reason)


def test_the_places_of_a_sum() -> None:
    assert sum_places(3, 1) == PLACES  # of few terms as of anything
    assert sum_places(64, 784) == pytest.approx(3**0.5 * 1568 * 2.0**-24)
