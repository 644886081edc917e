"""Texts of the size of real ones that need no files: sentences of two kinds, and a language.

In a sentence more words are of its own kind than of the other. In the language each word is followed by one
of four: whoever has learned which is left with a perplexity of four.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset
from timetrial.texts.classified import LABELS
from timetrial.texts.padding import blank, lengths_in_words, lengths_input
from timetrial.texts.words import RESERVED

TRAIN_SAMPLES, TEST_SAMPLES = 2048, 512
STEPS, WORDS, KINDS = 100, 5_000, 2
SHORTEST = 0.12  # of a sentence, as a part of the longest: those of Bahrampour and others have 12 to 99 steps
OWN = 0.65  # of its words that are of its own kind
LANGUAGE_STEPS, LANGUAGE_WORDS, FOLLOWERS = 35, 10_000, 4
SPLIT = f"{TRAIN_SAMPLES} for training and {TEST_SAMPLES} for testing, drawn apart"


def load_sentences(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """`tokens` (steps) below 5,000, `lengths` of which most are long (the mean is 71 % of `steps`), two
    classes."""
    steps = steps or STEPS
    train = _sentences(f"{name}/train", TRAIN_SAMPLES, steps, seed)
    return Dataset(
        name=name,
        inputs=(Input("tokens", (steps,), "i64"), lengths_input(), LABELS),
        train=train,
        test=_sentences(f"{name}/test", TEST_SAMPLES, steps, seed),
        classes=KINDS,
        description={
            "source": "generated: words of two kinds, few of them frequent; most are of the sentence's own",
            "split": SPLIT,
            "split_seed": seed,
            "vocabulary": f"{WORDS:,} numbers",
            "lengths": lengths_in_words(train["lengths"], steps),
        },
    )


def load_language(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """`tokens` (steps) below 10,000 and `labels` (steps): the next ones."""
    steps = steps or LANGUAGE_STEPS
    drawn = random.uniform(seed, "synthetic-language/next", (LANGUAGE_WORDS, FOLLOWERS), 0.0, 1.0)
    words = LANGUAGE_WORDS - len(RESERVED)
    followers = len(RESERVED) + np.minimum((drawn * words).astype(np.int64), words - 1)
    return Dataset(
        name=name,
        inputs=(Input("tokens", (steps,), "i64"), Input("labels", (steps,), "i64", "target")),
        train=_language(f"{name}/train", followers, TRAIN_SAMPLES, steps, seed),
        test=_language(f"{name}/test", followers, TEST_SAMPLES, steps, seed),
        classes=LANGUAGE_WORDS,
        description={
            "source": f"generated: each word is followed by one of {FOLLOWERS}",
            "split": SPLIT,
            "split_seed": seed,
            "vocabulary": f"{LANGUAGE_WORDS:,} numbers",
        },
        goes_on=True,
    )


def _sentences(stream: str, samples: int, steps: int, seed: int) -> Arrays:
    labels = random.permutation(seed, f"{stream}/labels", samples) % KINDS
    shortest = max(1, int(SHORTEST * steps))
    share = random.uniform(seed, f"{stream}/lengths", (samples,), 0.0, 1.0).astype(np.float64)
    lengths = shortest + (np.sqrt(share) * (steps + 1 - shortest)).astype(np.int64)
    lengths = np.minimum(lengths, steps)
    is_own = random.uniform(seed, f"{stream}/kinds", (samples, steps), 0.0, 1.0) < OWN
    kinds = np.where(is_own, labels[:, None], 1 - labels[:, None])
    each = (WORDS - len(RESERVED)) // KINDS
    place = random.uniform(seed, f"{stream}/words", (samples, steps), 0.0, 1.0).astype(np.float64)
    ranks = np.minimum((place * place * place * each).astype(np.int64), each - 1)
    tokens = len(RESERVED) + KINDS * ranks + kinds
    blank(tokens, lengths)
    return {"tokens": tokens, "lengths": lengths, "labels": labels}


def _language(stream: str, followers: np.ndarray, samples: int, steps: int, seed: int) -> Arrays:
    count = samples * steps + 1
    which = random.uniform(seed, f"{stream}/which", (count,), 0.0, float(FOLLOWERS)).astype(np.int64)
    which = np.minimum(which, FOLLOWERS - 1)
    text = np.empty(count, np.int64)
    word = len(RESERVED)
    for place in range(count):
        text[place] = word
        word = followers[word, which[place]]
    return {"tokens": text[:-1].reshape(samples, steps), "labels": text[1:].reshape(samples, steps)}
