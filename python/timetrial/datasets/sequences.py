"""Sequences of unequal length that need no files: series of numbers and texts of tokens, each with a class.

What is beyond a sequence's length is padding: 0. A series is a wave of its class's period at a random phase,
with noise; a text has tokens of both kinds, and its class is the kind that occurs more often.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset, IntArray

TRAIN_SAMPLES, TEST_SAMPLES = 2048, 512
STEPS, FEATURES, CLASSES = 24, 4, 4
SHORTEST = 8  # of the series
PERIODS = (3.0, 4.5, 7.0, 11.0)  # of the classes, in steps
NOISE = 0.3
TEXT_STEPS, VOCABULARY, KINDS = 20, 50, 2
FIRST_TOKEN = 2  # 0 is padding, 1 what is not in the vocabulary
SHARE = 0.65  # of a text's tokens that are of its own kind


def load_synthetic_series(folder: str | None, seed: int) -> Dataset:
    """`series` (24, 4), `lengths` from 8 to 24, four classes."""
    return Dataset(
        name="synthetic-series",
        inputs=(
            Input("series", (STEPS, FEATURES)),
            Input("lengths", (), "i64", "lengths"),
            Input("labels", (), "i64", "target"),
        ),
        train=_series("train", TRAIN_SAMPLES, seed),
        test=_series("test", TEST_SAMPLES, seed),
        classes=CLASSES,
        description={
            "source": "generated: waves of four periods at random phases, with noise",
            "split": f"{TRAIN_SAMPLES} for training and {TEST_SAMPLES} for testing, drawn apart",
            "split_seed": seed,
            "noise": NOISE,
            "steps": [SHORTEST, STEPS],
        },
    )


def load_synthetic_tokens(folder: str | None, seed: int) -> Dataset:
    """`tokens` (20) below 50, `lengths` from 1 to 20, two classes."""
    return Dataset(
        name="synthetic-tokens",
        inputs=(
            Input("tokens", (TEXT_STEPS,), "i64"),
            Input("lengths", (), "i64", "lengths"),
            Input("labels", (), "i64", "target"),
        ),
        train=_texts("train", TRAIN_SAMPLES, seed),
        test=_texts("test", TEST_SAMPLES, seed),
        classes=KINDS,
        description={
            "source": "generated: tokens of two kinds; the class is the kind that most are meant to be of",
            "split": f"{TRAIN_SAMPLES} for training and {TEST_SAMPLES} for testing, drawn apart",
            "split_seed": seed,
            "vocabulary": VOCABULARY,
            "steps": [1, TEXT_STEPS],
        },
    )


def _whole(seed: int, stream: str, samples: int, least: int, below: int) -> IntArray:
    drawn = random.uniform(seed, stream, (samples,), float(least), float(below)).astype(np.int64)
    return np.minimum(drawn, below - 1)


def _series(part: str, samples: int, seed: int) -> Arrays:
    stream = f"synthetic-series/{part}"
    labels = random.permutation(seed, f"{stream}/labels", samples) % CLASSES
    lengths = _whole(seed, f"{stream}/lengths", samples, SHORTEST, STEPS + 1)
    phases = random.uniform(seed, f"{stream}/phases", (samples, FEATURES), 0.0, 1.0)
    noise = random.uniform(seed, f"{stream}/noise", (samples, STEPS, FEATURES), -NOISE, NOISE)
    turns = np.arange(STEPS)[None, :, None] / np.array(PERIODS)[labels][:, None, None] + phases[:, None, :]
    # Triangles: the same bits on every machine, which sines would not promise.
    waves = 4 * np.abs(turns - np.floor(turns) - 0.5) - 1
    series = (waves + noise).astype(np.float32)
    series[np.arange(STEPS)[None, :] >= lengths[:, None]] = 0
    return {"series": series, "lengths": lengths, "labels": labels}


def _texts(part: str, samples: int, seed: int) -> Arrays:
    stream = f"synthetic-tokens/{part}"
    labels = random.permutation(seed, f"{stream}/labels", samples) % KINDS
    lengths = _whole(seed, f"{stream}/lengths", samples, 1, TEXT_STEPS + 1)
    places = (samples, TEXT_STEPS)
    is_own = random.uniform(seed, f"{stream}/kinds", places, 0.0, 1.0) < SHARE
    kinds = np.where(is_own, labels[:, None], 1 - labels[:, None])
    each = (VOCABULARY - FIRST_TOKEN) // KINDS
    words = random.uniform(seed, f"{stream}/words", places, 0.0, float(each)).astype(np.int64)
    tokens = FIRST_TOKEN + kinds * each + np.minimum(words, each - 1)
    tokens[np.arange(TEXT_STEPS)[None, :] >= lengths[:, None]] = 0
    return {"tokens": tokens, "lengths": lengths, "labels": labels}
