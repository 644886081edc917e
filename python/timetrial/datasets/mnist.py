"""MNIST, and what is published in its form (Fashion-MNIST; KMNIST under either name), from IDX files."""

from __future__ import annotations

from pathlib import Path

from timetrial.dataset_files.dataset import (
    ByteArray,
    Dataset,
    IntArray,
    check_labels,
    image_dataset,
    pixels,
)
from timetrial.dataset_files.files import file_hashes, find_files
from timetrial.datasets.idx import IMAGES, LABELS, read_idx
from timetrial.errors import InputError

CLASSES = 10
NAMES = [
    ("train-images-idx3-ubyte", "train-images.idx3-ubyte"),
    ("train-labels-idx1-ubyte", "train-labels.idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"),
    ("t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"),
]


def mnist_files(name: str, folder: str | None) -> list[Path]:
    """Training images and labels, test images and labels."""
    return find_files(name, folder, NAMES, ("MNIST/raw", "FashionMNIST/raw", "raw"))


def load_mnist(name: str, folder: str | None, seed: int) -> Dataset:
    """The split is the published one, so the seed plays no role."""
    files = mnist_files(name, folder)
    train_images, train_labels = _pair(files[0], files[1])
    test_images, test_labels = _pair(files[2], files[3])
    if len(train_images) < len(test_images):
        raise InputError(
            f"{files[0]} has {len(train_images)} images and {files[2]} has {len(test_images)}; expected "
            "more for training than for testing. Were the two pairs swapped?"
        )
    if train_images.shape[1:] != test_images.shape[1:]:
        raise InputError(
            f"{files[0]} has images of {_size(train_images)} and {files[2]} of {_size(test_images)}; "
            "expected the same size."
        )
    return image_dataset(
        name,
        (pixels(train_images[:, None]), train_labels),
        (pixels(test_images[:, None]), test_labels),
        classes=CLASSES,
        description={"source": "IDX files", "split": "as published", "files_sha256": file_hashes(files)},
    )


def _pair(images_file: Path, labels_file: Path) -> tuple[ByteArray, IntArray]:
    images = read_idx(images_file, IMAGES)
    labels = check_labels(read_idx(labels_file, LABELS), CLASSES, str(labels_file))
    if len(images) != len(labels):
        raise InputError(
            f"{images_file} has {len(images)} images, {labels_file} has {len(labels)} labels; expected "
            "the same number. Were training and test files swapped?"
        )
    if len(images) == 0:
        raise InputError(f"{images_file} has no images.")
    return images, labels


def _size(images: ByteArray) -> str:
    return f"{images.shape[1]}x{images.shape[2]}"
