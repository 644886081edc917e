"""What every dataset loader gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.core import Input, images_and_labels
from timetrial.errors import InputError

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]


Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Dataset:
    """For each input one array to train on and one to test on, samples along the first extent.

    `classes`: labels lie in 0 to classes - 1; without labels, the numbers of a target. `description` goes
    into the record: where the data came from, how it was split, hashes. `vocabularies`: of inputs that are
    numbers of words, the words by their numbers. `goes_on`: each sample goes on where the one before ended,
    as the steps of a long text do.
    """

    name: str
    inputs: tuple[Input, ...]
    train: Arrays
    test: Arrays
    classes: int
    description: dict[str, Any]
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    goes_on: bool = False


Pair = tuple[FloatArray, IntArray]


def image_dataset(name: str, train: Pair, test: Pair, classes: int, description: dict[str, Any]) -> Dataset:
    """Images f32 (n, C, H, W) with pixels in [0, 1], and labels i64 (n)."""
    return Dataset(
        name=name,
        inputs=tuple(images_and_labels(train[0].shape[1:])),
        train={"images": train[0], "labels": train[1]},
        test={"images": test[0], "labels": test[1]},
        classes=classes,
        description=description,
    )


def pixels(images: ByteArray) -> FloatArray:
    """Bytes 0 to 255 as f32 in [0, 1]."""
    scaled: FloatArray = images.astype(np.float32)
    scaled /= np.float32(255.0)
    return scaled


def check_labels(labels: npt.NDArray[Any], classes: int, where: str) -> IntArray:
    """Labels as i64; an InputError with the first label outside [0, classes)."""
    wide: IntArray = np.asarray(labels, dtype=np.int64).reshape(-1)
    wrong = np.flatnonzero((wide < 0) | (wide >= classes))
    if wrong.size:
        raise InputError(
            f"{where}: label {wide[wrong[0]]} at position {wrong[0]}; expected 0 to {classes - 1}. "
            "The file is damaged, or it is another dataset's."
        )
    return wide
