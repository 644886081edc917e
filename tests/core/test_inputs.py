"""Networks with inputs and targets of their own: native backends against `reference`, and what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from timetrial.cases.case import Case, Workload
from timetrial.contenders.registry import Contender, resolve
from timetrial.contenders.settings import job_settings
from timetrial.core import Backend, Input, Network, NetworkError
from timetrial.errors import InputError

N = 6
INPUTS = [
    Input("pictures", (2, 6, 6)),
    Input("side", (3,)),
    Input("plain", (1, 4, 4)),
    Input("wanted", (5,), role="target"),
]
NODES: list[dict[str, Any]] = [
    {"name": "conv", "kind": "conv2d", "inputs": ["pictures"], "attributes": {"channels": 3, "kernel": 3}},
    {"name": "relu", "kind": "relu"},
    {"name": "flat", "kind": "flatten"},
    {"name": "other", "kind": "flatten", "inputs": ["plain"]},
    {"name": "all", "kind": "concat", "inputs": ["flat", "side", "other"]},
    {"name": "fc", "kind": "dense", "attributes": {"units": 5}},
    {"name": "loss", "kind": "mean_squared_error", "inputs": ["fc", "wanted"]},
]
# What it reads it must give back.
AGAIN: list[dict[str, Any]] = [
    {"name": "flat", "kind": "flatten", "inputs": ["pictures"]},
    {"name": "code", "kind": "dense", "attributes": {"units": 7}},
    {"name": "tanh", "kind": "tanh"},
    {"name": "out", "kind": "dense", "attributes": {"units": 72}},
    {"name": "loss", "kind": "mean_squared_error", "inputs": ["out", "pictures"]},
]
SGD = {"name": "sgd", "learning_rate": 0.05, "momentum": 0.9}


def two_sided() -> Network:
    return Network(NODES, N, INPUTS)


def again() -> Network:
    return Network(AGAIN, N, INPUTS[:1])


def contender(name: str, threads: str) -> tuple[Contender, dict[str, str]]:
    case = Case(name, Workload("mlp", "synthetic", N, {}), settings={"threads": threads})
    found = resolve(case)
    return found, job_settings(case, found)


def built(
    name: str, network: Network, weights: dict[str, NDArray[np.float32]], threads: str = "1"
) -> Backend:
    found, settings = contender(name, threads)
    backend = Backend(found.path, preload=found.preload)
    for setting, value in settings.items():
        backend.configure(setting, value)
    backend.build(network, weights, SGD, tasks=("train", "gradient", "forward"))
    return backend


def drawn(network: Network) -> tuple[dict[str, NDArray[np.float32]], dict[str, NDArray[np.float32]]]:
    rng = np.random.default_rng(3)
    weights = {one["name"]: rng.normal(0, 0.3, one["shape"]).astype(np.float32) for one in network.parameters}
    return weights, {one.name: rng.normal(0, 1, (N, *one.shape)).astype(np.float32) for one in network.inputs}


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("make", [two_sided, again])
@pytest.mark.parametrize("name", ["eigen", "cblas", "onednn"])
def test_a_backend_computes_what_reference_computes(name: str, make: Any, threads: str) -> None:
    network = make()
    weights, batch = drawn(network)
    ours, judge = built(name, network, weights, threads), built("reference", network, weights)
    assert ours.step("gradient", batch) == pytest.approx(judge.step("gradient", batch), rel=1e-5)
    for parameter, expected in judge.tensors("gradient").items():
        assert np.linalg.norm(ours.tensors("gradient")[parameter] - expected) <= 1e-5 * np.linalg.norm(
            expected
        )
    for _ in range(3):
        assert ours.step("train") == pytest.approx(judge.step("train"), rel=1e-5)
    np.testing.assert_allclose(ours.evaluate(), judge.evaluate(), rtol=1e-4, atol=1e-5)


def test_reference_is_right() -> None:
    """By the formula itself, and each gradient of an input by differences."""
    network = two_sided()
    weights, batch = drawn(network)
    judge = built("reference", network, weights)
    loss = judge.step("gradient", batch)
    assert loss == pytest.approx(float(np.mean((judge.evaluate() - batch["wanted"]) ** 2)), rel=1e-6)
    gradients = judge.tensors("input_gradient")
    assert set(gradients) == {"pictures", "side", "plain"}
    rng = np.random.default_rng(4)
    for name, gradient in gradients.items():
        way = rng.normal(0, 1, gradient.shape).astype(np.float32)
        ends = [
            judge.step("gradient", {**batch, name: batch[name] + sign * np.float32(1e-4) * way})
            for sign in (1, -1)
        ]
        assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(float(np.sum(gradient * way)), rel=0.02)


def test_the_loop_gathers_every_input() -> None:
    from timetrial.core import Loop

    network = two_sided()
    weights, _ = drawn(network)
    rng = np.random.default_rng(5)
    data = {one.name: rng.normal(0, 1, (20, *one.shape)).astype(np.float32) for one in network.inputs}
    order = rng.permutation(18).reshape(3, N)
    backend = built("eigen", network, weights)
    losses = Loop(backend, data, order).run(4).losses
    backend.reset()
    rows = [order[step % 3] for step in range(4)]
    expected = [backend.step("train", {name: array[row] for name, array in data.items()}) for row in rows]
    assert losses.tolist() == expected
    with pytest.raises(InputError, match="the data have nothing for the input 'side'"):
        Loop(backend, {name: array for name, array in data.items() if name != "side"}, order)
    with pytest.raises(InputError, match=r"'side' has shape \(19, 3\), expected \(20, 3\)"):
        Loop(backend, {**data, "side": data["side"][:19]}, order)


@pytest.mark.parametrize(
    ("inputs", "change", "words"),
    [
        ([*INPUTS[:3], Input("wanted", (4,), role="target")], {}, r"'fc' gives \(6, 5\), 'wanted' \(6, 4\)"),
        ([*INPUTS[:3], Input("wanted", (), "i64", "target")], {}, "squared_error takes labels"),
        (INPUTS, {"inputs": ["fc", "side"]}, "'side'"),
        (INPUTS, {"kind": "squared_error"}, "needs labels .* as its second input; it has 'wanted'"),
        (
            [*INPUTS[:2], Input("plain", (4,), "i64"), INPUTS[3]],
            {},
            "which are whole numbers: it computes with real ones",
        ),
    ],
)
def test_targets_that_do_not_fit(inputs: list[Input], change: dict[str, Any], words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        Network([*NODES[:-1], {**NODES[-1], **change}], N, inputs)


def test_one_sample() -> None:
    network = again().resized(1)
    weights, batch = drawn(again())
    one = {name: array[:1] for name, array in batch.items()}
    ours, judge = built("eigen", network, weights), built("reference", network, weights)
    assert ours.step("train", one) == pytest.approx(judge.step("train", one), rel=1e-5)
