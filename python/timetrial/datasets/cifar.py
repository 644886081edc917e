"""CIFAR-10 and CIFAR-100 from a folder, in the binary or the pickled ("python") form.

Binary: records of one label byte (CIFAR-100: coarse, then fine) and 3072 bytes, red, green and blue plane of
32x32. Pickled: a dictionary with `data` (n, 3072) in the same order and `labels`, or `coarse_labels` and
`fine_labels`. cifar100 has the 100 fine labels, cifar100-coarse the 20 coarse ones of the same images.
Source: A. Krizhevsky's page of the datasets.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.dataset_files.dataset import (
    ByteArray,
    Dataset,
    IntArray,
    check_labels,
    image_dataset,
    pixels,
)
from timetrial.dataset_files.files import file_hashes, find_files, read_file
from timetrial.dataset_files.restricted_pickle import NotAdmitted, load_restricted
from timetrial.errors import InputError

PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Form:
    """How one of the two datasets lies on disk."""

    name: str
    classes: int
    train: tuple[str, ...]  # without the .bin of the binary form
    test: tuple[str, ...]
    label_bytes: int  # in front of each binary record
    label_place: int  # which of them counts
    label_key: str
    subfolders: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Training files, then test files."""
        return self.train + self.test


CIFAR10 = Form(
    name="cifar10",
    classes=10,
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    label_bytes=1,
    label_place=0,
    label_key="labels",
    subfolders=("cifar-10-batches-bin", "cifar-10-batches-py"),
)
CIFAR100 = Form(
    name="cifar100",
    classes=100,
    train=("train",),
    test=("test",),
    label_bytes=2,
    label_place=1,
    label_key="fine_labels",
    subfolders=("cifar-100-binary", "cifar-100-python"),
)
CIFAR100_COARSE = replace(
    CIFAR100, name="cifar100-coarse", classes=20, label_place=0, label_key="coarse_labels"
)


def cifar_files(form: Form, folder: str | None) -> list[Path]:
    """Training files, then test files: all binary if they are there, otherwise all pickled."""
    try:
        return find_files(form.name, folder, [(f"{name}.bin",) for name in form.files], form.subfolders)
    except InputError:
        pass
    try:
        return find_files(form.name, folder, [(name,) for name in form.files], form.subfolders)
    except InputError as error:
        raise InputError(f"{error} The binary form has the same names with .bin at the end.") from None


def load_cifar(form: Form, folder: str | None, seed: int) -> Dataset:
    """The split is the published one, so the seed plays no role."""
    files = cifar_files(form, folder)
    parts = [_read(form, file) for file in files]
    train = parts[: len(form.train)]
    for file, (images, _) in zip(files, train, strict=False):
        if len(images) != len(train[0][0]):
            raise InputError(
                f"{file} has {len(images)} images, {files[0]} has {len(train[0][0])}; expected "
                "the same number. One of them is truncated: download it again."
            )
    test_images, test_labels = parts[-1]
    train_images = np.concatenate([images for images, _ in train])
    if len(train_images) < len(test_images):
        raise InputError(
            f"{form.name} has {len(train_images)} images for training and {len(test_images)} for testing; "
            f"expected more for training. Was {files[-1].name} swapped with {files[0].name}?"
        )
    binary = ".bin" in files[0].suffixes
    return image_dataset(
        form.name,
        (pixels(train_images), np.concatenate([labels for _, labels in train])),
        (pixels(test_images), test_labels),
        classes=form.classes,
        description={
            "source": "binary files" if binary else "pickled files",
            "split": "as published",
            "files_sha256": file_hashes(files),
        },
    )


def _read(form: Form, file: Path) -> tuple[ByteArray, IntArray]:
    images, labels = _read_binary(form, file) if ".bin" in file.suffixes else _read_pickled(form, file)
    if len(images) == 0:
        raise InputError(f"{file} has no images.")
    return images.reshape(-1, 3, 32, 32), check_labels(labels, form.classes, str(file))


def _read_binary(form: Form, file: Path) -> tuple[ByteArray, Any]:
    content = np.frombuffer(read_file(file), dtype=np.uint8)
    record = form.label_bytes + PIXELS
    if content.size % record:
        other = CIFAR100 if form is CIFAR10 else CIFAR10  # the coarse form has the records of cifar100
        hint = (
            f"It looks like {other.name}."
            if content.size % (other.label_bytes + PIXELS) == 0
            else "It is truncated."
        )
        raise InputError(
            f"{file} has {content.size} bytes; expected a multiple of {record}, "
            f"the record of {form.name}. {hint}"
        )
    records = content.reshape(-1, record)
    return records[:, form.label_bytes :], records[:, form.label_place]


def _read_pickled(form: Form, file: Path) -> tuple[ByteArray, Any]:
    try:
        content = load_restricted(read_file(file))
    except NotAdmitted as error:
        raise InputError(
            f"{file} asks to run or build {error}, which no CIFAR file needs: it was not loaded. "
            "Download the official file again."
        ) from None
    except pickle.UnpicklingError as error:
        raise InputError(f"{file} is truncated or no pickled CIFAR file ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{file} holds a {type(content).__name__}; expected a dictionary with 'data'.")
    named = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    for key in ("data", form.label_key):
        if key not in named:
            present = ", ".join(sorted(str(name) for name in named))
            raise InputError(f"{file} has no '{key}', only {present}: it is no file of {form.name}.")
    images, labels = named["data"], named[form.label_key]
    if (
        not isinstance(images, np.ndarray)
        or images.dtype != np.uint8
        or images.ndim != 2
        or images.shape[1] != PIXELS
    ):
        found = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise InputError(f"{file}: 'data' is {found}; expected bytes (n, {PIXELS}).")
    if not isinstance(labels, (list, np.ndarray)) or not all(
        isinstance(label, (int, np.integer)) for label in labels
    ):
        raise InputError(f"{file}: '{form.label_key}' is no list of whole numbers.")
    if len(labels) != len(images):
        raise InputError(
            f"{file} has {len(images)} images and {len(labels)} labels; expected the same number."
        )
    return images, np.array(labels, dtype=np.int64)
