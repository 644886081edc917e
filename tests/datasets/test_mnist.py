"""MNIST's loader: reads the true form, and says no to every damage we could think of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dataset_formats import MNIST_NAMES, idx, write, write_mnist

from timetrial.errors import InputError, Unavailable
from timetrial.workloads import load_dataset

TRAIN_IMAGES, TRAIN_LABELS = MNIST_NAMES["train"]
TEST_IMAGES, TEST_LABELS = MNIST_NAMES["test"]


@pytest.mark.parametrize("packed", [False, True])
def test_reads_plain_and_gzipped(tmp_path: Path, packed: bool) -> None:
    arrays = write_mnist(tmp_path, packed=packed)
    data = load_dataset("mnist", str(tmp_path))
    assert data.train["images"].shape == (30, 1, 28, 28)
    assert data.train["images"].dtype == np.float32
    assert data.train["labels"].dtype == np.int64
    np.testing.assert_array_equal(
        data.train["images"][:, 0], arrays["train_images"].astype(np.float32) / np.float32(255)
    )
    np.testing.assert_array_equal(data.test["labels"], arrays["test_labels"])
    assert len(data.description["files_sha256"]) == 4


def test_reads_the_folder_that_torchvision_makes(tmp_path: Path) -> None:
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    write_mnist(folder)
    assert len(load_dataset("mnist", str(tmp_path)).test["labels"]) == 10


def test_no_folder_says_what_to_put_where() -> None:
    words = r"install mnist .*dataset_folder.*train-images-idx3-ubyte.*t10k-labels-idx1-ubyte"
    with pytest.raises(Unavailable, match=words):
        load_dataset("mnist")


@pytest.mark.attempt
def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere' does not exist.*Put these files there: train-images"):
        load_dataset("mnist", str(tmp_path / "nowhere"))


@pytest.mark.attempt
def test_missing_file_is_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / TEST_LABELS).unlink()
    with pytest.raises(InputError, match=f"lacks {TEST_LABELS} in"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_truncated(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    file = tmp_path / TRAIN_IMAGES
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        InputError, match=f"{TRAIN_IMAGES} is truncated.*30 x 28 x 28 = 23520 bytes, 23420 follow"
    ):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize("size", [0, 3, 10])
def test_truncated_header(tmp_path: Path, size: int) -> None:
    write_mnist(tmp_path)
    file = tmp_path / TRAIN_IMAGES
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(InputError, match=f"{TRAIN_IMAGES}.*{size} bytes"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_too_long(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    with (tmp_path / TRAIN_LABELS).open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(InputError, match=f"{TRAIN_LABELS} is too long"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_truncated_gzip(tmp_path: Path) -> None:
    write_mnist(tmp_path, packed=True)
    file = tmp_path / (TRAIN_IMAGES + ".gz")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"ubyte\.gz is not a complete gzip file"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_images_and_labels_swapped(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    images, labels = (tmp_path / TRAIN_IMAGES).read_bytes(), (tmp_path / TRAIN_LABELS).read_bytes()
    (tmp_path / TRAIN_IMAGES).write_bytes(labels)
    (tmp_path / TRAIN_LABELS).write_bytes(images)
    with pytest.raises(
        InputError, match=r"begins with 2049; expected the magic number 2051 \(images\).*swapped"
    ):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_labels_of_training_and_test_swapped(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    train, test = (tmp_path / TRAIN_LABELS).read_bytes(), (tmp_path / TEST_LABELS).read_bytes()
    (tmp_path / TRAIN_LABELS).write_bytes(test)
    (tmp_path / TEST_LABELS).write_bytes(train)
    with pytest.raises(InputError, match=r"has 30 images, .* has 10 labels.*swapped"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_training_and_test_swapped(tmp_path: Path) -> None:
    write_mnist(tmp_path, train=10, test=30)
    with pytest.raises(InputError, match=r"10 images and .* has 30; expected more for training.*swapped"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_wrong_magic(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / TEST_IMAGES).write_bytes(b"\x89PNG" + bytes(100))
    with pytest.raises(InputError, match=f"{TEST_IMAGES} begins with .*expected the magic number 2051"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_label_out_of_range(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    labels = np.zeros(30, dtype=np.uint8)
    labels[7] = 10
    write(tmp_path / TRAIN_LABELS, idx(labels))
    with pytest.raises(InputError, match=r"label 10 at position 7; expected 0 to 9"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_no_images(tmp_path: Path) -> None:
    write_mnist(tmp_path, train=0, test=0)
    with pytest.raises(InputError, match="has no images"):
        load_dataset("mnist", str(tmp_path))


@pytest.mark.attempt
def test_images_of_two_sizes(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    write(tmp_path / TEST_IMAGES, idx(np.zeros((10, 14, 14))))
    with pytest.raises(InputError, match=r"28x28 .* 14x14; expected the same size"):
        load_dataset("mnist", str(tmp_path))
