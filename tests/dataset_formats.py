"""Small files in the true forms of MNIST and CIFAR."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np

MNIST_NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def idx(array: np.ndarray[Any, Any]) -> bytes:
    """An IDX file of bytes: magic number 0x0800 + dimensions, extents, content."""
    return (
        struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
        + array.astype(np.uint8).tobytes()
    )


def write(file: Path, content: bytes, packed: bool = False) -> Path:
    if packed:
        file = file.with_name(file.name + ".gz")
        content = gzip.compress(content)
    file.write_bytes(content)
    return file


def write_mnist(
    folder: Path, train: int = 30, test: int = 10, packed: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(1)
    arrays = {}
    for part, count in (("train", train), ("test", test)):
        images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = random.permutation(np.arange(count) % 10).astype(np.uint8)
        write(folder / MNIST_NAMES[part][0], idx(images), packed)
        write(folder / MNIST_NAMES[part][1], idx(labels), packed)
        arrays[f"{part}_images"], arrays[f"{part}_labels"] = images, labels
    return arrays


def cifar_arrays(count: int, classes: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (count, 3072), dtype=np.uint8), random.integers(0, classes, count)


def cifar10_names(ending: str = "") -> list[str]:
    return [f"data_batch_{number}{ending}" for number in range(1, 6)] + [f"test_batch{ending}"]


def write_cifar10_binary(folder: Path, count: int = 4, packed: bool = False) -> None:
    for seed, name in enumerate(cifar10_names(".bin")):
        images, labels = cifar_arrays(count, 10, seed)
        write(folder / name, np.column_stack([labels.astype(np.uint8), images]).tobytes(), packed)


def write_cifar10_pickled(folder: Path, count: int = 4, packed: bool = False, protocol: int = 2) -> None:
    for seed, name in enumerate(cifar10_names()):
        images, labels = cifar_arrays(count, 10, seed)
        content = {
            b"batch_label": name.encode(),
            b"labels": labels.tolist(),
            b"data": images,
            b"filenames": [b"a.png"] * count,
        }
        write(folder / name, pickle.dumps(content, protocol=protocol), packed)


def write_cifar100_binary(folder: Path) -> None:
    for seed, (name, count) in enumerate((("train.bin", 12), ("test.bin", 5))):
        images, labels = cifar_arrays(count, 100, seed)
        coarse = (labels // 5).astype(np.uint8)
        (folder / name).write_bytes(np.column_stack([coarse, labels.astype(np.uint8), images]).tobytes())


def write_cifar100_pickled(folder: Path) -> None:
    for seed, (name, count) in enumerate((("train", 12), ("test", 5))):
        images, labels = cifar_arrays(count, 100, seed)
        content = {b"coarse_labels": (labels // 5).tolist(), b"fine_labels": labels.tolist(), b"data": images}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def python2_pickle(images: np.ndarray[Any, Any], labels: list[int]) -> bytes:
    """What Python 2's cPickle wrote for CIFAR's own files: byte strings, numpy.core, protocol 2."""
    raw = images.tobytes()
    out = b"\x80\x02}q\x01(U\x04dataq\x02"
    out += b"cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05"
    out += b"(K\x01M" + struct.pack("<H", images.shape[0])
    out += b"M" + struct.pack("<H", images.shape[1]) + b"\x86"
    out += b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07"
    out += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    out += b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    out += b"U\x06labelsq\x08](" + b"".join(b"K" + bytes([label]) for label in labels) + b"eu."
    return out
