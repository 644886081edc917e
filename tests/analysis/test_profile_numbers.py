"""Layers of a profile: medians, shares, work per time, and when they are not believed."""

from __future__ import annotations

from typing import Any

import fakes
import numpy as np
import pytest

from timetrial.analysis.profile import Machine, Quartiles, StepProfile, profile_of
from timetrial.records.model import CaseRecord, LayerWork, ProfiledLayer

CASE = CaseRecord(
    id="1", axes={}, backend="fast", network="mlp", dataset="digits28", batch_size=64, task="train",
    optimizer={"name": "sgd", "momentum": 0.9}, settings={}, multiply_accumulates=1_000_000, parameters=10,
    layers=[
        LayerWork(name=node["name"], kind=node["kind"], parameters=6, **fakes.WORK[str(node["name"])])
        for node in fakes.NODES
    ],
)  # fmt: skip


def profile(times: list[list[int]], names: list[tuple[str, Any]], **more: Any) -> StepProfile:
    layers = [ProfiledLayer(node=node, direction=direction) for node, direction in names]
    given = {"plain_ns": np.array([1000]), "plain_cpu_ns": 900.0, "machine": Machine(1e12, 1e10), **more}
    return profile_of(CASE, layers, np.array(times), **given)


def test_both_gradients_in_one_count_both_products() -> None:
    (row,) = profile([[1000] * 3], [("fc1", "backward")]).rows
    assert row.multiply_accumulates == 400_000
    assert row.flops_per_s == pytest.approx(8e11)
    assert row.percent_of_peak == pytest.approx(80)


def test_a_gradient_that_nobody_needs_is_no_work() -> None:
    (row,) = profile([[1000] * 3], [("conv1", "backward_data")]).rows
    assert (row.multiply_accumulates, row.percent_of_peak, row.bytes_per_s) == (None, None, None)


def test_updates_move_each_parameter_five_times_with_momentum() -> None:
    rows = profile([[40], [40]], [("fc1", "update"), ("*", "update")]).rows
    assert [row.bytes_per_s for row in rows] == [pytest.approx(5 * 4 * n / 40e-9) for n in (6, 10)]
    plain = CASE.model_copy(update={"optimizer": {"name": "sgd"}})
    layers = [ProfiledLayer(node="fc1", direction="update")]
    (row,) = profile_of(plain, layers, np.array([[36]]), np.array([1]), None, Machine()).rows
    assert row.bytes_per_s == pytest.approx(3 * 4 * 6 / 36e-9)


def test_nothing_is_divided_by_zero() -> None:
    found = profile([[0, 0], [0, 0]], [("fc1", "forward"), ("relu1", "forward")], plain_ns=np.array([]))
    assert [(row.share, row.flops_per_s, row.bytes_per_s) for row in found.rows] == [(0, None, None)] * 2
    assert (found.plain_step_ns, found.overhead) == (None, None)
    assert found.percent_of_peak(0) is None
    assert Quartiles.of([0]).half_width == 0


def test_the_limit_is_the_longer_of_arithmetic_and_memory() -> None:
    """fc1: 400,000 operations, 0.4 us at the peak; 2,000 bytes, 0.2 us from memory. relu1: 4,000 bytes."""
    names: list[tuple[str, Any]] = [("fc1", "forward"), ("relu1", "forward")]
    fc1, relu1 = sorted(profile([[1000] * 3, [1000] * 3], names).rows, key=lambda row: row.node)
    assert (fc1.bytes, fc1.operations_per_byte, fc1.limit) == (2_000, 200, "peak")
    assert fc1.percent_of_limit == pytest.approx(40)
    assert fc1.bytes_per_s is None, "where something is multiplied, bytes are not what it is measured by"
    assert (relu1.bytes, relu1.operations_per_byte, relu1.limit) == (4_000, None, "memory")
    assert relu1.percent_of_limit == pytest.approx(40)
    slow_memory = profile([[1000] * 3], [("fc1", "forward")], machine=Machine(1e12, 1e9)).rows[0]
    assert (slow_memory.limit, slow_memory.percent_of_limit) == ("memory", pytest.approx(200))


@pytest.mark.parametrize("machine", [Machine(), Machine(1e12), Machine(None, 1e10)])
def test_without_both_measured_there_is_no_limit(machine: Machine) -> None:
    names: list[tuple[str, Any]] = [("fc1", "forward"), ("relu1", "forward"), ("loss", "loss")]
    rows = profile([[1000] * 3] * 3, names, machine=machine).rows
    assert [(row.limit, row.percent_of_limit) for row in rows] == [(None, None)] * 3


def test_disturbances_that_wander_are_named() -> None:
    quiet = [[1000] * 4, [1000] * 4]
    wandering = [[1000, 1000, 9000, 1000], [9000, 9000, 1000, 1000]]
    names: list[tuple[str, Any]] = [("conv1", "forward"), ("fc1", "forward")]
    assert profile(quiet, names).warnings == []
    (warning,) = profile(wandering, names).warnings
    assert "the layers' medians add up to" in warning


def test_more_than_the_peak_is_explained() -> None:
    (warning,) = profile([[1000] * 3], [("fc1", "forward")], machine=Machine(1e11)).warnings
    assert "above the machine's f32 multiply-add peak" in warning
