"""Numbers to predict from two inputs, an image and a list of features, without any file.

Each of VALUES targets is a random weighting of the features plus the mean of one stripe of the image, through
a tanh, with noise: a network that reads one of the inputs only cannot get it right.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset, FloatArray

TRAIN_SAMPLES, TEST_SAMPLES = 4096, 1024
SIDE, FEATURES, VALUES = 8, 16, 4
NOISE = 0.02
INPUTS = (
    Input("images", (1, SIDE, SIDE)),
    Input("features", (FEATURES,)),
    Input("values", (VALUES,), role="target"),
)


def load_synthetic_regression(folder: str | None, seed: int) -> Dataset:
    """`images` (1, 8, 8), `features` (16), and the target `values` (4)."""
    weights = random.uniform(seed, "regression/weights", (FEATURES, VALUES), -1.0, 1.0)
    return Dataset(
        name="synthetic-regression",
        inputs=INPUTS,
        train=_draw("train", weights, TRAIN_SAMPLES, seed),
        test=_draw("test", weights, TEST_SAMPLES, seed),
        classes=VALUES,
        description={
            "source": "generated: weighted features and means of an image's stripes, with noise",
            "split": f"{TRAIN_SAMPLES} for training and {TEST_SAMPLES} for testing, drawn apart",
            "split_seed": seed,
            "noise": NOISE,
        },
    )


def _draw(part: str, weights: FloatArray, samples: int, seed: int) -> Arrays:
    stream = f"regression/{part}"
    images = random.uniform(seed, f"{stream}/images", (samples, 1, SIDE, SIDE), 0.0, 1.0)
    features = random.uniform(seed, f"{stream}/features", (samples, FEATURES), -1.0, 1.0)
    stripes = images.reshape(samples, VALUES, -1).mean(axis=2) - np.float32(0.5)
    noise = random.uniform(seed, f"{stream}/noise", (samples, VALUES), -NOISE, NOISE)
    # The product in double precision, column by column: the same bits whatever computes products here.
    weighted = sum(
        features[:, [i]].astype(np.float64) * weights[i].astype(np.float64) for i in range(FEATURES)
    )
    values = np.tanh(weighted / FEATURES**0.5 + 4.0 * stripes) + noise
    return {"images": images, "features": features, "values": values.astype(np.float32)}
