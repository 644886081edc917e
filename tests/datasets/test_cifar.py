"""CIFAR's loaders: both forms give the same arrays; damaged and hostile files are refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_formats import (
    cifar_arrays,
    python2_pickle,
    write_cifar10_binary,
    write_cifar10_pickled,
    write_cifar100_binary,
    write_cifar100_pickled,
)

from timetrial.errors import InputError
from timetrial.workloads import load_dataset


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("writer", [write_cifar10_binary, write_cifar10_pickled])
def test_cifar10(tmp_path: Path, writer: Any, packed: bool) -> None:
    writer(tmp_path, packed=packed)
    data = load_dataset("cifar10", str(tmp_path))
    images, labels = cifar_arrays(4, 10, seed=1)  # the second file
    assert data.train["images"].shape == (20, 3, 32, 32)
    assert data.test["images"].shape == (4, 3, 32, 32)
    expected = images.reshape(4, 3, 32, 32).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(data.train["images"][4:8], expected)
    np.testing.assert_array_equal(data.train["labels"][4:8], labels)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol(tmp_path: Path, protocol: int) -> None:
    write_cifar10_pickled(tmp_path, protocol=protocol)
    assert len(load_dataset("cifar10", str(tmp_path)).train["labels"]) == 20


def test_the_form_that_python_2_wrote(tmp_path: Path) -> None:
    write_cifar10_pickled(tmp_path)
    images, labels = cifar_arrays(4, 10, seed=9)
    (tmp_path / "data_batch_1").write_bytes(python2_pickle(images, labels.tolist()))
    data = load_dataset("cifar10", str(tmp_path))
    np.testing.assert_array_equal(data.train["labels"][:4], labels)
    np.testing.assert_array_equal(
        data.train["images"][:4].reshape(4, -1), images.astype(np.float32) / np.float32(255)
    )


@pytest.mark.parametrize("writer", [write_cifar100_binary, write_cifar100_pickled])
def test_cifar100_has_a_hundred_fine_classes(tmp_path: Path, writer: Any) -> None:
    folder = tmp_path / "cifar-100-binary"  # as unpacked from the official archive
    folder.mkdir()
    writer(folder)
    data = load_dataset("cifar100", str(tmp_path))
    assert data.classes == 100
    np.testing.assert_array_equal(data.train["labels"], cifar_arrays(12, 100, seed=0)[1])


@pytest.mark.attempt
def test_missing_files_are_named(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    (tmp_path / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"data_batch_1, .*test_batch .*\.bin at the end"):
        load_dataset("cifar10", str(tmp_path))


def test_no_folder_says_what_to_put_where() -> None:
    with pytest.raises(InputError, match=r"dataset_folder.*train, test"):
        load_dataset("cifar100")


@pytest.mark.attempt
def test_truncated_binary(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    file = tmp_path / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(
        InputError, match=r"data_batch_2.bin has 12291 bytes; expected a multiple of 3073.*truncated"
    ):
        load_dataset("cifar10", str(tmp_path))


@pytest.mark.attempt
def test_truncated_by_whole_records(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    file = tmp_path / "data_batch_5.bin"
    file.write_bytes(file.read_bytes()[:3073])
    with pytest.raises(InputError, match=r"data_batch_5.bin has 1 images.*has 4; expected the same number"):
        load_dataset("cifar10", str(tmp_path))


@pytest.mark.attempt
def test_cifar100_in_place_of_cifar10(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(bytes(3074 * 5))
    with pytest.raises(InputError, match=r"3073, the record of cifar10. It looks like cifar100"):
        load_dataset("cifar10", str(tmp_path))


@pytest.mark.attempt
def test_training_and_test_swapped(tmp_path: Path) -> None:
    write_cifar100_binary(tmp_path)
    train, test = tmp_path / "train.bin", tmp_path / "test.bin"
    content = train.read_bytes()
    train.write_bytes(test.read_bytes())
    test.write_bytes(content)
    with pytest.raises(InputError, match=r"5 images for training and 12 for testing.*swapped"):
        load_dataset("cifar100", str(tmp_path))


@pytest.mark.attempt
def test_label_out_of_range(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    file = tmp_path / "data_batch_1.bin"
    file.write_bytes(b"\x0a" + file.read_bytes()[1:])
    with pytest.raises(InputError, match=r"data_batch_1.bin: label 10 at position 0; expected 0 to 9"):
        load_dataset("cifar10", str(tmp_path))


@pytest.mark.attempt
def test_truncated_pickle(tmp_path: Path) -> None:
    write_cifar10_pickled(tmp_path)
    file = tmp_path / "data_batch_1"
    for size in (0, 1, 20, 4000, file.stat().st_size - 1):
        content = file.read_bytes()
        file.write_bytes(content[:size])
        with pytest.raises(InputError, match="data_batch_1 is truncated or no pickled CIFAR file"):
            load_dataset("cifar10", str(tmp_path))
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "holds a list; expected a dictionary"),
        ({b"data": np.zeros((4, 3072), np.uint8)}, "has no 'labels', only data"),
        ({b"data": [1, 2], b"labels": [1, 2]}, "'data' is list"),
        ({b"data": np.zeros((4, 100), np.uint8), b"labels": [1] * 4}, r"'data' is uint8 \(4, 100\)"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": [1] * 3}, "4 images and 3 labels"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": ["cat"] * 4}, "no list of whole numbers"),
    ],
)
def test_other_pickles(tmp_path: Path, content: object, message: str) -> None:
    write_cifar10_pickled(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(InputError, match=message):
        load_dataset("cifar10", str(tmp_path))


class Hostile:
    """Calls something when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


@pytest.mark.attempt
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_hostile_pickle_is_refused_and_nothing_runs(tmp_path: Path, protocol: int) -> None:
    write_cifar10_pickled(tmp_path)
    victim = tmp_path / "victim"
    hostile = [
        Hostile(os.mkdir, str(victim)),
        Hostile(eval, "1"),
        Hostile(np.fromfile, "/etc/passwd"),
        np.float64(1),
    ]
    for thing in hostile:
        content = pickle.dumps({b"data": thing, b"labels": [0]}, protocol=protocol)
        (tmp_path / "data_batch_1").write_bytes(content)
        with pytest.raises(InputError, match=r"asks to run or build .*: it was not loaded"):
            load_dataset("cifar10", str(tmp_path))
    assert not victim.exists()


@pytest.mark.attempt
def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    write_cifar10_pickled(tmp_path)
    content = {b"data": np.array([None, 1], dtype=object), b"labels": [0]}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(InputError, match="an array of type"):
        load_dataset("cifar10", str(tmp_path))
