"""Language models: a long text as steps of so many words, each with the word that comes next.

Each step goes on where the one before ended, for a network that carries its state there; for others it begins
anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.core import Input
from timetrial.dataset_files.dataset import Arrays, Dataset
from timetrial.errors import InputError
from timetrial.texts.words import END, WORDS_ARE, unknown_share, vocabulary_of

STEPS, MOST_WORDS = 35, 10_000


def language_dataset(
    name: str,
    train: Sequence[str],
    test: Sequence[str],
    steps: int,
    places: tuple[str, str],
    description: Mapping[str, Any],
) -> Dataset:
    """`tokens` (steps) and `labels` (steps). `places` say where the two texts are from."""
    vocabulary = vocabulary_of([train], MOST_WORDS, always=(END,))
    streams = vocabulary.numbers([train, test])
    arrays = [_in_steps(place, stream, steps) for place, stream in zip(places, streams, strict=True)]
    return Dataset(
        name=name,
        inputs=(Input("tokens", (steps,), "i64"), Input("labels", (steps,), "i64", "target")),
        train=arrays[0],
        test=arrays[1],
        classes=vocabulary.size,
        description={
            "words": WORDS_ARE,
            **description,
            "vocabulary": f"{vocabulary.size:,} numbers, with those for padding and for unknown words",
            "unknown_words": unknown_share([streams[0]]),
            "length": f"{len(train):,} words to train on and {len(test):,} to test on, in steps of {steps}; "
            "what does not fill the last step is left out",
        },
        vocabularies={"tokens": vocabulary.words},
        goes_on=True,
    )


def _in_steps(place: str, stream: npt.NDArray[np.int64], steps: int) -> Arrays:
    count = (len(stream) - 1) // steps
    if count < 1:
        raise InputError(
            f"{place} has {len(stream)} words; expected at least {steps + 1}: one step of {steps}, and the "
            "word that comes next. Take a longer text, or shorter steps: dataset=NAME@STEPS."
        )
    used = count * steps
    return {
        "tokens": stream[:used].reshape(count, steps),
        "labels": stream[1 : used + 1].reshape(count, steps),
    }
