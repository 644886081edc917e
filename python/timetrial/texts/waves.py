"""Series of unequal length that need no files: waves of four periods at random phases, with noise."""

from __future__ import annotations

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset
from timetrial.texts.classified import LABELS
from timetrial.texts.padding import blank, lengths_input
from timetrial.texts.synthetic import SPLIT, TEST_SAMPLES, TRAIN_SAMPLES

NAME = "synthetic-series"
STEPS, FEATURES, CLASSES = 24, 4, 4
SHORTEST = 8
PERIODS = (3.0, 4.5, 7.0, 11.0)  # of the classes, in steps
NOISE = 0.3


def load_waves(folder: str | None, seed: int) -> Dataset:
    """`series` (24, 4), `lengths` from 8 to 24, four classes."""
    return Dataset(
        name=NAME,
        inputs=(Input("series", (STEPS, FEATURES)), lengths_input(), LABELS),
        train=_waves("train", TRAIN_SAMPLES, seed),
        test=_waves("test", TEST_SAMPLES, seed),
        classes=CLASSES,
        description={
            "source": "generated: waves of four periods at random phases, with noise",
            "split": SPLIT,
            "split_seed": seed,
            "noise": NOISE,
            "steps": [SHORTEST, STEPS],
        },
    )


def _waves(part: str, samples: int, seed: int) -> Arrays:
    stream = f"{NAME}/{part}"
    labels = random.permutation(seed, f"{stream}/labels", samples) % CLASSES
    drawn = random.uniform(seed, f"{stream}/lengths", (samples,), float(SHORTEST), float(STEPS + 1))
    lengths = np.minimum(drawn.astype(np.int64), STEPS)
    phases = random.uniform(seed, f"{stream}/phases", (samples, FEATURES), 0.0, 1.0)
    noise = random.uniform(seed, f"{stream}/noise", (samples, STEPS, FEATURES), -NOISE, NOISE)
    turns = np.arange(STEPS)[None, :, None] / np.array(PERIODS)[labels][:, None, None] + phases[:, None, :]
    # Triangles: the same bits on every machine, which sines would not promise.
    waves = 4 * np.abs(turns - np.floor(turns) - 0.5) - 1
    series = (waves + noise).astype(np.float32)
    blank(series, lengths)
    return {"series": series, "lengths": lengths, "labels": labels}
