"""What is found in the samples of a data set: how many there are of each class, and which come twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.core import Input
from timetrial.dataset_files.dataset import Arrays, Dataset

# For each of `train` and `test`: "samples"; "classes", how many samples of each (where there are labels);
# "duplicates", how many samples are those of an earlier one, bit for bit. "test_in_train": how many of those
# to test on are among those to train on.
Facts = dict[str, Any]


def facts_of(data: Dataset) -> Facts:
    """Looks at every sample. Two samples are the same if all that a network reads of them is."""
    read = [one.name for one in data.inputs if one.role != "target"]
    label = _label(data.inputs)
    sums = {part: _sums([arrays[name] for name in read]) for part, arrays in _parts(data).items()}
    facts: Facts = {}
    for part, arrays in _parts(data).items():
        facts[part] = {"samples": len(sums[part]), "duplicates": len(sums[part]) - len(set(sums[part]))}
        if label is not None:
            counts = np.bincount(arrays[label].reshape(-1), minlength=data.classes)
            facts[part]["classes"] = [int(count) for count in counts]
    trained_on = set(sums["train"])
    facts["test_in_train"] = sum(one in trained_on for one in sums["test"])
    return facts


def _parts(data: Dataset) -> dict[str, Arrays]:
    return {"train": data.train, "test": data.test}


def _label(inputs: Sequence[Input]) -> str | None:
    """The target, where it is one label for each sample."""
    return next(
        (one.name for one in inputs if one.role == "target" and one.dtype == "i64" and not one.shape), None
    )


def _sums(arrays: Sequence[npt.NDArray[Any]]) -> list[bytes]:
    """A hash of each sample."""
    found = []
    for number in range(len(arrays[0])):
        digest = hashlib.blake2b(digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array[number]).data)
        found.append(digest.digest())
    return found
