"""IMDB's reviews as numbers of words, in the file that Keras has of them: imdb.npz, beside it the words.

A number is a word's place by frequency, from 1. The arrays are of lists, which NumPy keeps as a pickle: it is
read with nothing admitted but lists and numbers.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.dataset_files.copying import DAMAGED_ZIP
from timetrial.dataset_files.dataset import Dataset, IntArray, check_labels
from timetrial.dataset_files.files import file_hashes
from timetrial.dataset_files.restricted_pickle import load_lists
from timetrial.errors import InputError
from timetrial.texts.classified import token_dataset
from timetrial.texts.words import RESERVED, UNKNOWN, Vocabulary

NUMBERS, INDEX = "imdb.npz", "imdb_word_index.json"
CLASSES = ("neg", "pos")


def load_numbers(name: str, root: Path, most_words: int, steps: int) -> Dataset:
    """The most frequent words have numbers, as in a vocabulary made of the texts; the file has the split."""
    file = root / NUMBERS
    train, test = (_part(file, part, most_words) for part in ("train", "test"))
    files = [one for one in (file, root / INDEX) if one.is_file()]
    return token_dataset(
        name,
        train,
        test,
        len(CLASSES),
        Vocabulary((*RESERVED, *_words(root / INDEX, most_words - len(RESERVED)))),
        steps,
        {
            "source": f"numbers of words, by frequency, in {NUMBERS}",
            "split": "as published",
            "class_names": ", ".join(CLASSES),
            "files_sha256": file_hashes(files),
        },
    )


def _part(file: Path, part: str, most_words: int) -> tuple[list[IntArray], IntArray, list[str]]:
    lists, labels = (_array(file, f"{letter}_{part}") for letter in "xy")
    if len(lists) != len(labels):
        raise InputError(f"{file}: {len(lists)} texts in x_{part} and {len(labels)} labels in y_{part}.")
    names = [f"{file}: text {number} of x_{part}" for number in range(len(lists))]
    tokens = [_numbers(name, one, most_words) for name, one in zip(names, lists, strict=True)]
    return tokens, check_labels(np.asarray(labels), len(CLASSES), f"{file}: y_{part}"), names


def _numbers(where: str, ranks: Any, most_words: int) -> IntArray:
    """Ranks from 1 become numbers behind the reserved ones."""
    found = np.asarray(ranks)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InputError(f"{where} is no list of whole numbers.")
    if found.size and found.min() < 1:
        raise InputError(
            f"{where} has the number {found.min()}; expected a word's place by frequency, from 1."
        )
    moved = found.astype(np.int64) + len(RESERVED) - 1
    return np.where(moved < most_words, moved, UNKNOWN)


def _array(file: Path, name: str) -> list[Any] | npt.NDArray[Any]:
    """An array of the file; of one of lists these."""
    try:
        with zipfile.ZipFile(file) as archive:
            content = archive.read(f"{name}.npy")
        stream = io.BytesIO(content)
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        _, _, dtype = read(stream)
        if not dtype.hasobject:
            plain: npt.NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
            return plain
        return load_lists(stream.read())
    except KeyError:
        raise InputError(
            f"{file} has no array {name}; expected x_train, y_train, x_test and y_test."
        ) from None
    except (OSError, ValueError, pickle.UnpicklingError, *DAMAGED_ZIP) as error:
        raise InputError(f"{file} cannot be read ({name}: {error}): download it again.") from None


def _words(file: Path, most: int) -> list[str]:
    """The first words by their rank; without the file their ranks."""
    ranks = {number: f"#{number}" for number in range(1, most + 1)}
    if file.is_file():
        try:
            index = json.loads(file.read_text(encoding="utf-8"))
            ranks.update({int(rank): str(word) for word, rank in index.items() if 1 <= int(rank) <= most})
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise InputError(f"{file} is no table of words and their ranks ({error}).") from None
    return [ranks[number] for number in range(1, most + 1)]
