"""Translations that need no files: each word stands for one of the other language, in reverse order, so that
the first word to be said is the last that was read.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import random
from timetrial.dataset_files.dataset import Arrays, Dataset, IntArray
from timetrial.errors import InputError
from timetrial.texts.padding import NOT_COUNTED, blank, lengths_in_words
from timetrial.texts.pairs import STEPS, pair_inputs
from timetrial.texts.synthetic import SPLIT, TEST_SAMPLES, TRAIN_SAMPLES, WORDS
from timetrial.texts.words import RESERVED

END, START = len(RESERVED), len(RESERVED) + 1  # of the second language
FIRST = START + 1  # word, of both
SHORTEST = 0.2  # of a sentence, as a part of the longest


def load_translations(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """What pairs of files have, of words below 5,000 in both languages."""
    steps = steps or STEPS
    if steps < 2:
        raise InputError(f"'{name}' has 1 step; expected at least 2: a word, and the end of the sentence.")
    means = FIRST + random.permutation(seed, "synthetic-pairs/words", WORDS - FIRST)
    train = _pairs(f"{name}/train", means, TRAIN_SAMPLES, steps, seed)
    return Dataset(
        name=name,
        inputs=pair_inputs(steps),
        train=train,
        test=_pairs(f"{name}/test", means, TEST_SAMPLES, steps, seed),
        classes=WORDS,
        description={
            "source": "generated: each word stands for one of the other language, in reverse",
            "split": SPLIT,
            "split_seed": seed,
            "vocabulary": f"{WORDS:,} numbers of each language",
            "lengths": lengths_in_words(train["source_lengths"], steps),
        },
    )


def _pairs(stream: str, means: IntArray, samples: int, steps: int, seed: int) -> Arrays:
    most = steps - 1  # the end is said, too
    shortest = max(1, int(SHORTEST * most))
    share = random.uniform(seed, f"{stream}/lengths", (samples,), 0.0, 1.0).astype(np.float64)
    lengths = np.minimum(shortest + (share * (most + 1 - shortest)).astype(np.int64), most)
    place = random.uniform(seed, f"{stream}/words", (samples, most), 0.0, 1.0).astype(np.float64)
    words = np.minimum((place * place * place * len(means)).astype(np.int64), len(means) - 1)
    step = np.arange(most)
    turned = np.where(step < lengths[:, None], lengths[:, None] - 1 - step, step)
    said = np.take_along_axis(means[words], turned, axis=1)
    source, tokens, labels = (np.zeros((samples, steps), np.int64) for _ in range(3))
    source[:, :most], tokens[:, 0], tokens[:, 1:], labels[:, :most] = FIRST + words, START, said, said
    labels[np.arange(samples), lengths] = END
    blank(source, lengths)
    blank(tokens, lengths + 1)
    labels[np.arange(steps) > lengths[:, None]] = NOT_COUNTED
    return {
        "source": source,
        "source_lengths": lengths,
        "tokens": tokens,
        "lengths": lengths + 1,
        "labels": labels,
    }
