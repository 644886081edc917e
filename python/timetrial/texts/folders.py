"""Texts of the user's in folders, one for each class; IMDB's reviews, in their folders or as numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, read_text
from timetrial.dataset_files.trees import (
    HELD_OUT,
    Split,
    Tree,
    Wanted,
    hold_out,
    root_of,
    split_of,
    tree_sum,
)
from timetrial.texts.classified import Texts, text_dataset
from timetrial.texts.imdb_numbers import INDEX, NUMBERS, load_numbers
from timetrial.texts.words import words_of

STEPS, MOST_WORDS = 200, 10_000
# Of DLBench's LSTM on IMDB: 5,000 words, at most 500 of a review.
IMDB_STEPS, IMDB_WORDS = 500, 5_000
TEXTS = Wanted("text", (".txt",), "train/CLASS/*.txt and test/CLASS/*.txt, or CLASS/*.txt")
REVIEWS = Wanted(
    "review",
    (".txt",),
    f"train/pos/*.txt, train/neg, test/pos and test/neg, or {NUMBERS}",
    ignored=("unsup",),
)


def texts_key(folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return _key(folder, split_of("texts", folder, TEXTS))


def load_texts(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """A folder for each class."""
    return _load(name, folder, split_of(name, folder, TEXTS), (MOST_WORDS, steps or STEPS), seed)


def imdb_key(folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    root = _imdb_root(folder)
    if (root / NUMBERS).is_file():
        return file_hashes(root / name for name in (NUMBERS, INDEX) if (root / name).is_file())
    return _key(str(root), split_of("imdb", str(root), REVIEWS))


def load_imdb(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """25,000 reviews to train on and 25,000 to test on (Maas and others, ACL 2011), as their words or as
    Keras's numbers of them. The split is the published one."""
    root = _imdb_root(folder)
    sizes = (IMDB_WORDS, steps or IMDB_STEPS)
    if (root / NUMBERS).is_file():
        return load_numbers(name, root, *sizes)
    return _load(name, str(root), split_of("imdb", str(root), REVIEWS), sizes, seed)


def _imdb_root(folder: str | None) -> Path:
    root = root_of("imdb", folder, REVIEWS.layout)
    return root / "aclImdb" if (root / "aclImdb").is_dir() else root


def _key(folder: str | None, split: Split) -> dict[str, str]:
    train, test = split
    labels = repr((train.labels, test.labels if test else ()))
    return {"texts": tree_sum(Path(folder or ""), _files(split)), "labels": labels}


def _files(split: Split) -> list[Path]:
    train, test = split
    return [*train.files, *(test.files if test else ())]


def _load(name: str, folder: str | None, split: Split, sizes: tuple[int, int], seed: int) -> Dataset:
    train, test = split
    description: dict[str, Any] = {
        "source": "texts of the user's",
        "split": "as the folders say",
        "class_names": ", ".join(train.classes),
        "files_sha256": {"all texts": tree_sum(Path(folder or ""), _files(split))},
    }
    if test is None:
        train, test = hold_out(train, TEXTS, "texts", seed)
        description["split"] = f"random, one of {HELD_OUT} of each class for testing"
        description["split_seed"] = seed
    return text_dataset(name, _read(train), _read(test), len(train.classes), *sizes, description)


def _read(tree: Tree) -> Texts:
    words = [words_of(read_text(file)) for file in tree.files]
    return Texts(words, np.array(tree.labels, np.int64), [str(file) for file in tree.files])
