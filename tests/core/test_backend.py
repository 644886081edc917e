from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from timetrial import core
from timetrial.core import random
from timetrial.errors import InputError, MeasurementError, Unavailable

SGD = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0}
BACKENDS = core.native_dir() / "backends"


@pytest.fixture
def weights(network: core.Network) -> dict[str, NDArray[np.float32]]:
    return {one["name"]: random.initial_values(1, one) for one in network.parameters}


@pytest.fixture
def data() -> dict[str, NDArray[Any]]:
    images = random.uniform(1, "images", (40, 1, 6, 6))
    labels = np.arange(40) % 3
    images[np.arange(40), 0, labels, labels] += 2.0
    order = np.concatenate([random.permutation(epoch, "order", 40) for epoch in range(4)]).reshape(-1, 8)
    return {"images": images, "labels": labels, "order": order}


@pytest.fixture
def backend(network: core.Network, weights: dict[str, NDArray[np.float32]]) -> core.Backend:
    backend = core.Backend(BACKENDS / "reference.so")
    backend.build(network, weights, SGD, ["train", "gradient", "forward"])
    return backend


def test_a_backend_describes_itself() -> None:
    reference = core.Backend(BACKENDS / "reference.so").description
    assert reference.name == "reference"
    assert set(reference.tasks) == {"train", "gradient", "forward"}
    assert "conv2d" in reference.layers
    assert reference.dtypes == ("f32",) or "f32" in reference.dtypes
    null = core.Backend(BACKENDS / "null.so").description
    assert null.flags == ("reads_no_data", "unprovable")


def test_steps_change_the_weights_and_reset_brings_them_back(
    backend: core.Backend, weights: dict[str, NDArray[np.float32]], data: dict[str, NDArray[Any]]
) -> None:
    batch = {"images": data["images"][:8], "labels": data["labels"][:8]}
    first = backend.step("gradient", batch)
    for name, values in backend.tensors("parameter").items():
        np.testing.assert_array_equal(values, weights[name], err_msg="gradient must not update")
    gradients = backend.tensors("gradient")
    assert set(gradients) == set(weights)
    assert backend.step("train") == first
    for name, values in backend.tensors("parameter").items():
        np.testing.assert_allclose(values, weights[name] - 0.1 * gradients[name], rtol=1e-5, atol=1e-7)
    assert backend.step("train") < first
    backend.reset()
    assert backend.step("gradient") == first
    prediction = backend.evaluate(batch)
    assert prediction.shape == (8, 3)
    softmax = np.exp(prediction) / np.exp(prediction).sum(axis=1, keepdims=True)
    assert -np.log(softmax[np.arange(8), batch["labels"]]).mean() == pytest.approx(first, rel=1e-5)


def test_tensors_can_be_written(backend: core.Backend, data: dict[str, NDArray[Any]]) -> None:
    bias = np.array([0.0, 50.0, 0.0])
    backend.write_tensor("fc.bias", bias)
    np.testing.assert_array_equal(backend.tensors("parameter")["fc.bias"], bias)
    assert (backend.evaluate({"images": data["images"][:8]}).argmax(axis=1) == 1).all()


def loop_over(backend: core.Backend, data: dict[str, NDArray[Any]]) -> core.Loop:
    return core.Loop(backend, {name: data[name] for name in ("images", "labels")}, data["order"])


def test_the_loop_gives_the_losses_of_single_steps(
    backend: core.Backend, data: dict[str, NDArray[Any]]
) -> None:
    loop = loop_over(backend, data)
    segment = loop.run(25)  # the order has 20 batches: it starts again
    assert segment.steps == 25
    assert len(segment.durations_ns()) == 25
    assert set(segment.boundaries()) == {1}
    assert segment.losses[-1] < segment.losses[0]
    backend.reset()
    rows = [data["order"][step % 20] for step in range(25)]
    expected = [
        backend.step("train", {name: data[name][row] for name in ("images", "labels")}) for row in rows
    ]
    np.testing.assert_array_equal(segment.losses, expected)
    backend.reset()
    loop.rewind()
    parts = loop.run(2, parts=True)
    assert parts.boundaries().tolist() == [2, 3, 4, 5, 1] * 2
    np.testing.assert_allclose(parts.losses, expected[:2], rtol=1e-12)


def test_the_loop_ends_at_a_loss_that_is_not_finite(
    backend: core.Backend, data: dict[str, NDArray[Any]]
) -> None:
    backend.write_tensor("fc.bias", np.full(3, np.nan))
    segment = loop_over(backend, data).run(10)
    assert segment.steps == 1
    assert np.isnan(segment.losses).all()


def test_a_loop_over_null_needs_no_data(network: core.Network) -> None:
    backend = core.Backend(BACKENDS / "null.so")
    backend.build(network, {}, SGD)
    segment = core.Loop(backend, recorder=core.Recorder(capacity=1000)).run()
    assert segment.steps == 999
    assert core.Loop(backend).run(max_ns=1).steps == 1


def test_what_does_not_fit_is_named(
    network: core.Network,
    backend: core.Backend,
    weights: dict[str, NDArray[np.float32]],
    data: dict[str, NDArray[Any]],
) -> None:
    samples = {name: data[name] for name in ("images", "labels")}
    images, order = data["images"], data["order"]
    fresh = core.Backend(BACKENDS / "reference.so")
    with pytest.raises(InputError, match="call build"):
        fresh.step("train")
    with pytest.raises(InputError, match=r"no initial values of the parameter 'fc.bias'"):
        fresh.build(network, {k: v for k, v in weights.items() if k != "fc.bias"}, SGD)
    with pytest.raises(InputError, match=r"no parameter 'fc.bios'. Did you mean 'fc.bias'"):
        fresh.build(network, {**weights, "fc.bios": np.zeros(3, np.float32)}, SGD)
    with pytest.raises(InputError, match=r"'fc.weight' have shape \(16, 3\); expected \(3, 16\)"):
        fresh.build(network, {**weights, "fc.weight": weights["fc.weight"].T}, SGD)
    with pytest.raises(InputError, match="needs an optimizer"):
        fresh.build(network, weights)
    with pytest.raises(InputError, match="built already"):
        backend.build(network, weights, SGD)
    with pytest.raises(InputError, match=r"'images' have shape \(7, 1, 6, 6\); expected \(8, 1, 6, 6\)"):
        backend.step("train", {"images": images[:7]})
    with pytest.raises(InputError, match="'labels' have 3 at 1; expected 0 to 2"):
        backend.step("train", {"images": images[:8], "labels": [0, 3, 0, 0, 0, 0, 0, 0]})
    with pytest.raises(InputError, match="dtype float64; expected whole numbers"):
        backend.step("train", {"labels": np.zeros(8)})
    with pytest.raises(InputError, match=r"no input 'lables'. Did you mean 'labels'"):
        backend.step("train", {"lables": np.zeros(8, int)})
    with pytest.raises(InputError, match="unknown task 'fit'"):
        backend.step("fit")
    with pytest.raises(InputError, match="unknown role 'weights'"):
        backend.tensors("weights")
    with pytest.raises(InputError, match=r"no tensor 'fc.wieght' of that role. Did you mean 'fc.weight'"):
        backend.write_tensor("fc.wieght", 1.0)
    with pytest.raises(InputError, match="together"):
        core.Loop(backend, samples)
    with pytest.raises(InputError, match=r"order has shape \(160,\)"):
        core.Loop(backend, samples, order.ravel())
    with pytest.raises(InputError, match=r"the order: the index 40 is not in 0 to 39 \(place 8\)"):
        core.Loop(backend, samples, np.arange(32, 48).reshape(2, 8))
    with pytest.raises(InputError, match="max_steps = 0"):
        core.Loop(backend).run(0)
    with core.Recorder() as recorder, pytest.raises(MeasurementError, match="busy"):
        core.Loop(backend, recorder=recorder).run(1)


def test_files_that_are_no_plugins(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.so"):
        core.Backend(tmp_path / "missing.so")
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(InputError, match=r"text\.so"):
        core.Backend(text)


def test_what_a_backend_lacks_is_unavailable(
    network: core.Network, weights: dict[str, NDArray[np.float32]]
) -> None:
    backend = core.Backend(BACKENDS / "reference.so")
    with pytest.raises(Unavailable):
        backend.configure("no.such.setting", "1")
    with pytest.raises(Unavailable):
        backend.build(network, weights, {"name": "newton"})
