"""The datasets that need no files: what they hold, that the split is fair, and that they can be learned."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from timetrial.datasets.codes import FACTORS, WIDTHS
from timetrial.errors import InputError, Unavailable
from timetrial.workloads import Dataset, load_dataset


def softmax_regression(data: Dataset, epochs: int, learning_rate: float) -> float:
    """Test accuracy of a linear classifier, trained by plain SGD on batches of 64."""
    images = data.train["images"].reshape(len(data.train["images"]), -1)
    weight, bias = np.zeros((images.shape[1], data.classes), np.float32), np.zeros(data.classes, np.float32)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(images))
        for start in range(0, len(images) - 63, 64):
            batch = order[start : start + 64]
            scores = images[batch] @ weight + bias
            gradient = np.exp(scores - scores.max(axis=1, keepdims=True))
            gradient /= gradient.sum(axis=1, keepdims=True)
            gradient[np.arange(64), data.train["labels"][batch]] -= 1.0
            weight -= learning_rate * images[batch].T @ gradient / 64
            bias -= learning_rate * gradient.mean(axis=0)
    scores = data.test["images"].reshape(len(data.test["images"]), -1) @ weight + bias
    return float((scores.argmax(axis=1) == data.test["labels"]).mean())


@pytest.mark.parametrize(
    ("name", "epochs", "learning_rate", "low", "high"),
    [
        ("digits8", 20, 0.5, 0.9, 1.0),
        ("digits28", 20, 0.05, 0.9, 1.0),
        # Not trivial either: a linear classifier must not get everything right.
        ("synthetic", 10, 0.02, 0.8, 0.97),
        ("synthetic-cifar", 6, 0.005, 0.8, 0.97),
    ],
)
def test_a_linear_classifier_learns(
    name: str, epochs: int, learning_rate: float, low: float, high: float
) -> None:
    accuracy = softmax_regression(load_dataset(name), epochs, learning_rate)
    assert low < accuracy < high


def test_wrong_labels_cannot_be_learned() -> None:
    """The check above can say no."""
    data = load_dataset("digits8")
    shuffled = np.random.default_rng(0).permutation(data.train["labels"])
    wrong = replace(data, train={**data.train, "labels": shuffled})
    assert softmax_regression(wrong, 5, 0.5) < 0.4


@pytest.mark.parametrize(
    ("name", "shape", "train", "test"),
    [
        ("digits8", (1, 8, 8), 1437, 360),
        ("digits28", (1, 28, 28), 1437, 360),
        ("synthetic", (1, 28, 28), 4096, 1024),
        ("synthetic-cifar", (3, 32, 32), 4096, 1024),
    ],
)
def test_shapes_types_and_range(name: str, shape: tuple[int, ...], train: int, test: int) -> None:
    data = load_dataset(name)
    assert data.train["images"].shape == (train, *shape)
    assert data.test["images"].shape == (test, *shape)
    for images, labels in (
        (data.train["images"], data.train["labels"]),
        (data.test["images"], data.test["labels"]),
    ):
        assert images.dtype == np.float32
        assert labels.dtype == np.int64
        assert images.min() >= 0.0
        assert images.max() <= 1.0
        assert set(labels) == set(range(10))


@pytest.mark.parametrize("name", ["digits8", "synthetic"])
def test_not_sorted_by_class(name: str) -> None:
    labels = load_dataset(name).train["labels"]
    # Sorted labels change 9 times; fair ones about nine times in ten.
    assert np.count_nonzero(np.diff(labels)) > 0.7 * len(labels)


def test_both_sizes_of_digits_are_the_same_digits() -> None:
    small, large = load_dataset("digits8"), load_dataset("digits28")
    np.testing.assert_array_equal(small.train["labels"], large.train["labels"])
    assert small.description["train_indices_sha256"] == large.description["train_indices_sha256"]
    mean = np.abs(small.train["images"].mean(axis=(1, 2, 3)) - large.train["images"].mean(axis=(1, 2, 3)))
    assert mean.max() < 0.05


def test_the_split_is_random_and_whole() -> None:
    from sklearn.datasets import load_digits

    source = load_digits()
    data = load_dataset("digits8")
    both = np.concatenate([data.train["images"], data.test["images"]]).reshape(1797, 64)
    expected = source.data.astype(np.float32) / np.float32(16)
    np.testing.assert_array_equal(both[np.lexsort(both.T)], expected[np.lexsort(expected.T)])
    # A split by place would leave one group of writers for testing.
    assert not np.array_equal(data.test["labels"], source.target[1437:])


def test_the_recorded_split_stays_the_same() -> None:
    """A constant: results of different days are compared on it."""
    description = load_dataset("digits8").description
    assert description["train_indices_sha256"].startswith("5c7879db796f7898")
    assert description["test_indices_sha256"].startswith("7c02e7bea0156477")


def test_another_seed_is_another_split() -> None:
    first, second = load_dataset("digits8", seed=0), load_dataset("digits8", seed=1)
    assert first.description["train_indices_sha256"] != second.description["train_indices_sha256"]


def test_synthetic_is_the_same_every_time() -> None:
    first, second = load_dataset("synthetic"), load_dataset("synthetic")
    np.testing.assert_array_equal(first.train["images"], second.train["images"])
    assert not np.array_equal(first.train["images"][:1024], first.test["images"])


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(Unavailable, match="pip install scikit-learn"):
        load_dataset("digits28")


def test_unknown_dataset() -> None:
    with pytest.raises(InputError, match=r"no dataset 'digit28'\. Did you mean 'digits28'"):
        load_dataset("digit28")


@pytest.mark.parametrize("width", WIDTHS)
def test_codes_can_be_said_with_fewer_numbers_but_not_with_none(width: int) -> None:
    """By their principal components: as many as there are factors say nearly all, half as many do not."""
    data = load_dataset(f"synthetic-codes-{width}")
    assert [one.name for one in data.inputs] == ["codes"]
    train, test = data.train["codes"], data.test["codes"]
    assert (train.shape, test.shape) == ((4096, width), (1024, width))
    assert min(train.min(), test.min()) >= 0
    assert max(train.max(), test.max()) <= 1
    mean = train.mean(axis=0)
    components = np.linalg.svd(train[:1024] - mean, full_matrices=False)[2]

    def left(count: int) -> float:
        """The part of the variance of the test set that so many components miss."""
        centered = test - mean
        said = centered @ components[:count].T @ components[:count]
        return float(((centered - said) ** 2).sum() / (centered**2).sum())

    assert left(FACTORS) < 0.2 < left(FACTORS // 2)
    assert left(0) == 1
