"""Texts and series with one label each, as data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.core import Input
from timetrial.dataset_files.dataset import Dataset, IntArray
from timetrial.texts.padding import cut_in_words, lengths_in_words, lengths_input, padded
from timetrial.texts.words import WORDS_ARE, Vocabulary, unknown_share, vocabulary_of

LABELS = Input("labels", (), "i64", "target")


@dataclass(frozen=True)
class Texts:
    """Some of them, each with its label and where it is from."""

    words: Sequence[Sequence[str]]
    labels: IntArray
    names: Sequence[str]  # "FILE", for what is said of one

    def those(self, places: Sequence[int]) -> Texts:
        """Some, in that order."""
        return Texts(
            [self.words[place] for place in places],
            self.labels[list(places)],
            [self.names[place] for place in places],
        )


def text_dataset(
    name: str,
    train: Texts,
    test: Texts,
    classes: int,
    most_words: int,
    steps: int,
    description: Mapping[str, Any],
) -> Dataset:
    """Numbers of words: the vocabulary is that of the texts to train on."""
    vocabulary = vocabulary_of(train.words, most_words)
    return token_dataset(
        name,
        (vocabulary.numbers(train.words), train.labels, train.names),
        (vocabulary.numbers(test.words), test.labels, test.names),
        classes,
        vocabulary,
        steps,
        {"words": WORDS_ARE, **description},
    )


Part = tuple[Sequence[npt.NDArray[np.int64]], IntArray, Sequence[str] | None]


def token_dataset(
    name: str,
    train: Part,
    test: Part,
    classes: int,
    vocabulary: Vocabulary,
    steps: int,
    description: Mapping[str, Any],
) -> Dataset:
    """`tokens` (steps), `lengths` and `labels`."""
    arrays = {}
    for part, (tokens, labels, names) in (("train", train), ("test", test)):
        array, lengths = padded(tokens, steps, names)
        arrays[part] = {"tokens": array, "lengths": lengths, "labels": labels}
    return Dataset(
        name=name,
        inputs=(Input("tokens", (steps,), "i64"), lengths_input(), LABELS),
        train=arrays["train"],
        test=arrays["test"],
        classes=classes,
        description={
            **description,
            "vocabulary": f"{vocabulary.size:,} numbers, with those for padding and for unknown words",
            "unknown_words": unknown_share([arrays["train"]["tokens"]]),
            "lengths": lengths_in_words(arrays["train"]["lengths"], steps),
            "cut": cut_in_words([*train[0], *test[0]], steps),
        },
        vocabularies={"tokens": vocabulary.words},
    )


def series_dataset(
    name: str,
    train: tuple[Sequence[npt.NDArray[np.float32]], IntArray],
    test: tuple[Sequence[npt.NDArray[np.float32]], IntArray],
    classes: int,
    steps: int,
    description: Mapping[str, Any],
) -> Dataset:
    """`series` (steps, F), `lengths` and `labels`, of series (T, F)."""
    arrays = {}
    for part, (series, labels) in (("train", train), ("test", test)):
        array, lengths = padded(series, steps)
        arrays[part] = {"series": array, "lengths": lengths, "labels": labels}
    return Dataset(
        name=name,
        inputs=(Input("series", (steps, train[0][0].shape[1])), lengths_input(), LABELS),
        train=arrays["train"],
        test=arrays["test"],
        classes=classes,
        description={
            **description,
            "lengths": lengths_in_words(arrays["train"]["lengths"], steps),
            "cut": cut_in_words([*train[0], *test[0]], steps),
        },
    )
