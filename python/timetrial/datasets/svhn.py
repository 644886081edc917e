"""SVHN's cropped digits from a folder: train_32x32.mat and test_32x32.mat, MATLAB files of version 5.

Each has `X`, bytes (32, 32, 3, n), and `y` (n, 1), in which 10 means the digit 0. extra_32x32.mat is not
read. Source: the page of the Street View House Numbers data set, Y. Netzer et al. 2011.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import scipy.io

from timetrial.dataset_files.dataset import ByteArray, Dataset, IntArray, check_labels, image_dataset, pixels
from timetrial.dataset_files.files import file_hashes, find_files, read_file
from timetrial.errors import InputError

CLASSES = 10
NAMES = [("train_32x32.mat",), ("test_32x32.mat",)]


def svhn_files(folder: str | None) -> list[Path]:
    """The training file, the test file."""
    return find_files("svhn", folder, NAMES, ("format2", "svhn"))


def load_svhn(folder: str | None, seed: int) -> Dataset:
    """The split is the published one, so the seed plays no role."""
    files = svhn_files(folder)
    (train_images, train_labels), (test_images, test_labels) = (_read(file) for file in files)
    if len(train_images) < len(test_images):
        raise InputError(
            f"{files[0]} has {len(train_images)} images and {files[1]} has {len(test_images)}; expected "
            "more for training than for testing. Were they swapped?"
        )
    return image_dataset(
        "svhn",
        (pixels(train_images), train_labels),
        (pixels(test_images), test_labels),
        classes=CLASSES,
        description={
            "source": "MATLAB files of cropped digits, 10 read as 0",
            "split": "as published, without the extra images",
            "files_sha256": file_hashes(files),
        },
    )


def _read(file: Path) -> tuple[ByteArray, IntArray]:
    content = read_file(file)
    try:
        found = scipy.io.loadmat(
            io.BytesIO(content),  # type: ignore[arg-type]  # an open file does
            variable_names=("X", "y"),
        )
    except Exception as error:  # a damaged file can fail in any way
        raise InputError(
            f"{file} is truncated or no MATLAB file of version 5 ({type(error).__name__}: {error}). "
            "Download it again."
        ) from None
    missing = [name for name in ("X", "y") if name not in found]
    if missing:
        raise InputError(f"{file} has no {' and no '.join(missing)}: it is no file of SVHN's cropped digits.")
    images, labels = found["X"], np.asarray(found["y"])
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise InputError(f"{file}: X is {images.dtype} {images.shape}; expected bytes (32, 32, 3, n).")
    if labels.size != images.shape[3]:
        raise InputError(
            f"{file} has {images.shape[3]} images and {labels.size} labels; expected the same number."
        )
    if labels.size == 0:
        raise InputError(f"{file} has no images.")
    if labels.dtype.kind not in "iu":
        raise InputError(f"{file}: y is {labels.dtype}; expected whole numbers, 1 to 10.")
    ones = check_labels(labels.astype(np.int64) - 1, CLASSES, f"{file}, labels from 1 on")
    return images.transpose(3, 2, 0, 1), (ones + 1) % CLASSES
