"""Codes in [0, 1] with something to find in them, for auto-encoders that read the output of another one.

Each code of so many numbers is made of FACTORS that are drawn: a random weighting of them, a tanh, and noise.
Fewer numbers can say it again, but not none.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset, FloatArray

WIDTHS = (200, 400, 800, 1000)  # of the stacked auto-encoders' first and second codes
TRAIN_SAMPLES, TEST_SAMPLES = 4096, 1024
FACTORS = 16
NOISE = 0.02


def load_codes(width: int, folder: str | None, seed: int) -> Dataset:
    """`codes` (width)."""
    weights = random.uniform(seed, f"codes-{width}/weights", (FACTORS, width), -1.0, 1.0)
    return Dataset(
        name=f"synthetic-codes-{width}",
        inputs=(Input("codes", (width,)),),
        train=_draw("train", weights, TRAIN_SAMPLES, seed),
        test=_draw("test", weights, TEST_SAMPLES, seed),
        classes=width,
        description={
            "source": f"generated: {FACTORS} factors, weighted, through a tanh, with noise",
            "split": f"{TRAIN_SAMPLES} for training and {TEST_SAMPLES} for testing, drawn apart",
            "split_seed": seed,
            "noise": NOISE,
        },
    )


def _draw(part: str, weights: FloatArray, samples: int, seed: int) -> Arrays:
    stream, width = f"codes-{weights.shape[1]}/{part}", weights.shape[1]
    factors = random.uniform(seed, f"{stream}/factors", (samples, FACTORS), -1.0, 1.0).astype(np.float64)
    # The product in double precision, factor by factor: the same bits whatever computes products here.
    weighted = np.zeros((samples, width))
    for factor in range(FACTORS):
        weighted += factors[:, [factor]] * weights[factor].astype(np.float64)
    noise = random.uniform(seed, f"{stream}/noise", (samples, width), -NOISE, NOISE)
    codes = np.clip(0.5 + 0.5 * np.tanh(weighted) + noise, 0.0, 1.0)
    return {"codes": codes.astype(np.float32)}
