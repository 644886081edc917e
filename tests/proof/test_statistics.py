"""What rounding makes of the mean and the variance of a batch, as far as the judge knows it."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_coupled import Stage
from test_rounded_sums import stage_of

from timetrial.agreement import rounding
from timetrial.agreement.rounding import Doubt, doubt_of, doubt_of_batch, margins_of, shifted
from timetrial.agreement.sizes import UNIT, norm
from timetrial.agreement.statistics import (
    PLACES,
    UNIFORM,
    Arrays,
    Normalization,
    normalizations,
    states_off,
    weights_off,
)

TIMES_EACH = 4096  # as if each image came so often
EPSILON = 1e-5


def found_in(stage: Stage) -> Normalization:
    [found] = normalizations(stage.witness.nodes, stage.activation, TIMES_EACH)
    return found


def doubt_in(stage: Stage) -> Doubt:
    names = {one["name"] for one in stage.network.states}
    states = {name: values for name, values in stage.parameters.items() if name in names}
    trained = {name: values for name, values in stage.parameters.items() if name not in names}
    return doubt_of_batch(stage.witness, trained, states, stage.images, TIMES_EACH)


def test_a_sum_of_single_precision_is_off_by_that() -> None:
    """One term after the other, against a sum in double precision."""
    count, rng = 1 << 16, np.random.default_rng(4)
    terms = rng.uniform(0, 1, (40, count)).astype(np.float32)
    exact = terms.sum(axis=1, dtype=np.float64)
    off = (np.cumsum(terms, axis=1, dtype=np.float32)[:, -1] - exact) / exact
    said = UNIT * math.sqrt(count) / 3
    assert 0.5 * said < math.sqrt(float(np.mean(off**2))) < 2 * said


def test_statistics_of_a_network() -> None:
    stage = stage_of()
    values, found = stage.activation["conv"], found_in(stage)
    assert (found.weight, found.bias) == ("bn.weight", "bn.bias")
    assert (found.running_mean, found.running_var) == ("bn.running_mean", "bn.running_var")
    count = TIMES_EACH * values.size / values.shape[1]
    assert found.off == pytest.approx(UNIFORM * UNIT * math.sqrt(count) / 3)
    np.testing.assert_allclose(found.variance, values.var(axis=(0, 2, 3)))
    np.testing.assert_allclose(found.size, np.sqrt((values**2).mean(axis=(0, 2, 3))))


def test_weights_stand_for_statistics() -> None:
    """A channel whose mean and variance are off is one of another weight and bias."""
    stage = stage_of()
    values, found = stage.activation["conv"], found_in(stage)
    weight, bias = stage.parameters["bn.weight"], stage.parameters["bn.bias"]

    def normalized(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        spread = np.sqrt(variance + EPSILON)
        channels = (None, slice(None), None, None)
        result: np.ndarray = (values - mean[channels]) / spread[channels] * weight[channels] + bias[channels]
        return result

    mean = values.mean(axis=(0, 2, 3))
    right = normalized(mean, found.variance)
    moved = weights_off([found], stage.parameters)
    for off, name in (
        (normalized(mean, found.variance * (1 + found.off)), found.weight),
        (normalized(mean + found.off * found.size, found.variance), found.bias),
    ):
        stage.witness.load({**stage.parameters, name: stage.parameters[name] - PLACES * moved[name]})
        shown = stage.witness.gradient(stage.images, {}).activation["bn"]
        signs = np.sign(weight)[None, :, None, None]  # a size has none
        assert norm((off - right) * signs - (shown - right)) < 0.01 * norm(off - right), name


@pytest.mark.parametrize(("share", "is_within"), [(1.0, True), (20.0, False)])
def test_their_rounding_is_doubted_and_no_more(share: float, is_within: bool) -> None:
    stage = stage_of()
    doubt, found, plain = doubt_in(stage), found_in(stage), stage.activation["bn"]
    signs = np.resize([1, -1], found.variance.shape)
    stretched = stage.parameters["bn.weight"] * (1 - share * found.off / UNIFORM / 2 * signs)
    stage.witness.load({**stage.parameters, "bn.weight": stretched})
    shown = stage.witness.gradient(stage.images, {})
    apart = math.sqrt(TIMES_EACH) * norm(shown.activation["bn"] - plain)
    assert (apart <= doubt.allowed("activation", "bn")) == is_within


def test_what_is_kept_of_them_is_doubted() -> None:
    stage = stage_of()
    doubt, off = doubt_in(stage), states_off([found_in(stage)])
    assert set(off) == {"bn.running_mean", "bn.running_var"}
    for name, values in off.items():
        assert 0 < norm(values) <= doubt.of["state", name] < 10 * norm(values), name


def test_a_loss_is_doubted_by_its_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the directions that are tried happen not to move it."""
    stage = stage_of()

    def still(*of: Any, **more: Any) -> Doubt:
        return replace(doubt_of(*of, **more), loss=0.0)

    monkeypatch.setattr(rounding, "doubt_of", still)
    slopes = [norm(stage.gradient[name] * stage.parameters[name]) for name in stage.gradient]
    assert doubt_in(stage).loss >= PLACES * math.sqrt(sum(one**2 for one in slopes)) > 0


def test_a_channel_of_equal_values_is_not_divided_by_nothing() -> None:
    stage = stage_of()
    stage.parameters["conv.weight"][0] = 0.0
    stage.compute()
    doubt = doubt_in(stage)
    assert np.all(np.isfinite([doubt.loss, *doubt.of.values()]))


def test_a_doubt_holds_no_decision_however_many_lie_on_an_edge() -> None:
    """Thirty thousand, of which last places would turn thousands: a single one would be all of a gradient."""
    rng = np.random.default_rng(5)
    parameters = {"w": np.ones(30_000)}
    edges = 1 + rng.uniform(-1, 1, 30_000) * PLACES
    sides = parameters["w"] > edges

    def ask(at: Arrays) -> SimpleNamespace:
        turned = np.count_nonzero((at["w"] > edges) != sides)
        return SimpleNamespace(loss=0.0, gradient={"w": at["w"] + turned}, activation={}, state={})

    moved = [ask(at).gradient["w"] - 1 for at in shifted(parameters)]
    assert min(float(np.max(one)) for one in moved) > 5_000
    doubt = doubt_of(ask(parameters), parameters, ask)
    assert doubt.of["gradient", "w"] < PLACES * 30_000**0.5


def test_what_decides_is_moved_as_far_as_by_parameters_alone_or_hardly_farther() -> None:
    stage = stage_of()
    doubt = doubt_in(stage)
    asked = stage.witness, stage.parameters, stage.images, stage.activation, TIMES_EACH
    alone = margins_of(*asked)
    assert doubt.margins.keys() == alone.keys() != set()
    for name, margin in doubt.margins.items():
        assert 0.7 * alone[name] < margin < 2 * alone[name]
