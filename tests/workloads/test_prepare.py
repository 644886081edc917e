"""What a contender is given: weights, orders, proof batches; and what a wrong workload is told."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_formats import write_cifar10_pickled, write_mnist

from timetrial.cases.case import Workload
from timetrial.core import NetworkError
from timetrial.errors import InputError, Unavailable
from timetrial.workloads import check, load_network, prepare

SGD = {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9}
MLP = Workload(network="mlp", dataset="digits8", batch_size=64, optimizer=SGD)
pytestmark = pytest.mark.usefixtures("cache")


def change(**keys: Any) -> Workload:
    return dataclasses.replace(MLP, **keys)


def load(path: str) -> np.ndarray[Any, Any]:
    loaded: np.ndarray[Any, Any] = np.load(path, allow_pickle=False)
    return loaded


def test_the_job_is_plain_and_complete() -> None:
    prepared = prepare(MLP, seed=1, epochs=3)
    job = json.loads(json.dumps(prepared.job))
    assert job == prepared.job
    assert job["batch_size"] == 64
    assert job["optimizer"] == {**SGD, "weight_decay": 0.0}
    assert (prepared.samples, prepared.test_samples, prepared.steps_per_epoch) == (1437, 360, 22)
    assert set(job["streams"]) == {"train", "proof", "proof2", "proof3", "test"}
    for node in job["network"]["nodes"]:
        for parameter in node["parameters"]:
            array = load(parameter["file"])
            assert list(array.shape) == parameter["shape"]
            assert array.dtype == np.float32
            assert array.flags.c_contiguous


def test_weights_are_glorot_uniform_and_biases_zero() -> None:
    prepared = prepare(MLP, seed=1, epochs=1)
    files = {
        parameter["name"]: load(parameter["file"])
        for node in prepared.job["network"]["nodes"]
        for parameter in node["parameters"]
    }
    limit = (6 / (512 + 512)) ** 0.5
    weight = files["fc2.weight"]
    assert np.abs(weight).max() <= limit
    assert np.abs(weight).max() > 0.99 * limit
    assert abs(weight.std() - limit / 3**0.5) < 0.01 * limit
    assert not files["fc2.bias"].any()


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_one_batch_of_the_proof_has_one_label_and_different_images(batch_size: int) -> None:
    """Equal ones alone have no variance that a normalization could divide by."""
    stream = prepare(change(batch_size=batch_size), seed=1, epochs=1).job["streams"]["proof3"]
    order, labels = load(stream["order"]), load(stream["tensors"]["labels"])
    assert order.shape == (1, batch_size)
    assert len(set(labels[order[0]])) == 1
    most = max(np.bincount(labels))
    assert len(set(order[0])) == min(batch_size, most)
    assert most > 1 or batch_size == 1


def test_every_epoch_is_a_permutation_cut_into_full_batches() -> None:
    order = load(prepare(MLP, seed=1, epochs=3).job["streams"]["train"]["order"])
    assert order.dtype == np.int64
    assert order.shape == (3 * 22, 64)
    epochs = order.reshape(3, -1)
    for epoch in epochs:
        assert len(set(epoch)) == 22 * 64
        assert epoch.min() >= 0
        assert epoch.max() < 1437
    left_out = [set(range(1437)) - set(epoch) for epoch in epochs]
    assert left_out[0] != left_out[1]
    assert not np.array_equal(epochs[0], epochs[1])


def test_the_proof_has_no_ties() -> None:
    proof = prepare(MLP, seed=1, epochs=1).job["streams"]["proof"]
    images, labels, order = (
        load(proof["tensors"]["images"]),
        load(proof["tensors"]["labels"]),
        load(proof["order"]),
    )
    assert images.shape == (5 * 64, 1, 8, 8)
    assert images.dtype == np.float32
    assert order.tolist() == np.arange(5 * 64).reshape(5, 64).tolist()
    assert set(labels) == set(range(10))
    assert all(len(np.unique(image)) == image.size for image in images)
    assert 0.0 < images.min() < 0.05
    assert 0.95 < images.max() < 1.0
    assert abs(images.mean() - 0.5) < 0.01
    # Neighbors know nothing of each other.
    assert abs(np.corrcoef(images[:, 0, 0, 0], images[:, 0, 0, 1])[0, 1]) < 0.2


def test_large_images_have_no_ties_either() -> None:
    workload = change(network="cifar-small", dataset="synthetic-cifar", batch_size=4)
    images = load(prepare(workload, seed=1, epochs=1).job["streams"]["proof"]["tensors"]["images"])
    assert all(len(np.unique(image)) == image.size for image in images)


def test_the_seed_draws_weights_and_order_but_not_the_split() -> None:
    first, same, other = (prepare(MLP, seed=seed, epochs=1) for seed in (1, 1, 2))
    assert first.job == same.job
    assert first.fingerprint == same.fingerprint
    assert first.fingerprint != other.fingerprint
    assert first.job["streams"]["train"]["order"] != other.job["streams"]["train"]["order"]
    assert (
        first.job["streams"]["train"]["tensors"]["images"]
        == other.job["streams"]["train"]["tensors"]["images"]
    )
    assert first.description == other.description


@pytest.mark.parametrize(
    "other",
    [
        {"network": "lenet5", "dataset": "digits28"},
        {"dataset": "digits28"},
        {"batch_size": 32},
        {"optimizer": {**SGD, "momentum": 0.5}},
    ],
)
def test_what_changes_the_arithmetic_changes_the_fingerprint(other: dict[str, Any]) -> None:
    assert (
        prepare(MLP, seed=1, epochs=1).fingerprint != prepare(change(**other), seed=1, epochs=1).fingerprint
    )


def test_a_backend_that_reads_no_data_gets_no_files() -> None:
    prepared = prepare(MLP, seed=1, epochs=1, reads_data=False)
    assert prepared.job["streams"] == {}
    assert "file" not in json.dumps(prepared.job)


def test_the_record_knows_where_the_data_came_from() -> None:
    description = prepare(MLP, seed=1, epochs=1).description
    assert description["dataset"] == "digits8"
    assert (description["train_samples"], description["test_samples"]) == (1437, 360)
    assert len(description["train_indices_sha256"]) == 64
    assert set(description["arrays_sha256"]) >= {"train_images.npy", "train_labels.npy", "test_images.npy"}


def test_mnist_goes_through_the_cache_by_content(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    workload = change(network="lenet5", dataset="mnist", batch_size=10, dataset_folder=str(tmp_path))
    first = prepare(workload, seed=1, epochs=1).job["streams"]["train"]["tensors"]["images"]
    assert load(first).shape == (30, 1, 28, 28)
    assert prepare(workload, seed=1, epochs=1).job["streams"]["train"]["tensors"]["images"] == first
    write_mnist(tmp_path, train=40)
    second = prepare(workload, seed=1, epochs=1).job["streams"]["train"]["tensors"]["images"]
    assert load(second).shape == (40, 1, 28, 28)


def test_cifar_trains_the_network_for_its_images(tmp_path: Path) -> None:
    write_cifar10_pickled(tmp_path)
    workload = change(network="cifar-small", dataset="cifar10", batch_size=5, dataset_folder=str(tmp_path))
    assert prepare(workload, seed=1, epochs=1).steps_per_epoch == 4


def test_digits_come_from_the_cache_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(MLP, seed=1, epochs=1)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert prepare(MLP, seed=2, epochs=1).samples == 1437


@pytest.mark.attempt
@pytest.mark.parametrize("size", [0, -1, True, 2.0, "64"])
def test_wrong_batch_sizes(size: Any) -> None:
    with pytest.raises(InputError, match=rf"batch_size is {size!r}; expected a whole number of at least 1"):
        check(change(batch_size=size))


@pytest.mark.attempt
def test_batch_size_above_the_training_set() -> None:
    assert check(change(batch_size=1437)).samples == 1437
    with pytest.raises(
        InputError, match=r"batch_size is 1438, but 'digits8' has 1437 samples .* at most 1437"
    ):
        check(change(batch_size=1438))


@pytest.mark.attempt
def test_no_epochs() -> None:
    with pytest.raises(InputError, match="epochs is 0; expected at least 1"):
        prepare(MLP, seed=1, epochs=0)


@pytest.mark.attempt
def test_missing_files_of_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_DATASETS", str(tmp_path))
    with pytest.raises(Unavailable, match=r"timetrial datasets install mnist \(or dataset_folder=FOLDER"):
        check(change(dataset="mnist"))
    with pytest.raises(InputError, match=r"set dataset_folder to one that holds data_batch_1"):
        check(change(dataset="cifar10"))


@pytest.mark.attempt
def test_images_too_small_for_the_network() -> None:
    with pytest.raises(NetworkError, match=r"conv2"):
        check(change(network="lenet5"))


@pytest.mark.attempt
def test_an_output_that_does_not_fit_the_classes(tmp_path: Path) -> None:
    file = tmp_path / "seven.toml"
    file.write_text(
        '[[nodes]]\nname = "flat"\nkind = "flatten"\n'
        '[[nodes]]\nname = "fc"\nkind = "dense"\nattributes = { units = 7 }\n'
        '[[nodes]]\nname = "loss"\nkind = "softmax_cross_entropy"\ninputs = ["fc", "labels"]\n'
    )
    assert load_network(str(file)).name == "seven"
    with pytest.raises(InputError, match=r"output 'fc' .* \[64, 7\].* 10 classes; expected \[64, 10\]"):
        check(change(network=str(file)))


@pytest.mark.attempt
def test_unknown_names() -> None:
    with pytest.raises(InputError, match="Did you mean 'mlp'"):
        check(change(network="mpl"))
    with pytest.raises(InputError, match="Did you mean 'digits8'"):
        check(change(dataset="digit8"))
    with pytest.raises(InputError, match="Did you mean 'momentum'"):
        check(change(optimizer={"name": "sgd", "learning_rate": 0.1, "momentm": 0.9}))
