"""scikit-learn's handwritten digits: 1797 real 8x8 images (UCI, Alpaydin and Kaynak 1998), no download.

The file is ordered by writer. The split is random and recorded, so the test set is no other population.
"""

from __future__ import annotations

import hashlib
import importlib

import numpy as np

from timetrial.core import random
from timetrial.dataset_files.dataset import Dataset, FloatArray, check_labels, image_dataset
from timetrial.datasets.resize import resize_bilinear
from timetrial.errors import Unavailable

CLASSES = 10
SAMPLES, TRAIN_SAMPLES = 1797, 1437


def load_digits8(folder: str | None, seed: int) -> Dataset:
    """Images (1, 8, 8)."""
    return _load("digits8", 8, seed)


def load_digits28(folder: str | None, seed: int) -> Dataset:
    """Images (1, 28, 28), the same digits resized by bilinear interpolation."""
    return _load("digits28", 28, seed)


def _load(name: str, size: int, seed: int) -> Dataset:
    try:
        sklearn = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise Unavailable(
            f"the dataset '{name}' comes with scikit-learn: pip install scikit-learn "
            "(dataset=synthetic needs nothing)"
        ) from None
    source = sklearn.load_digits()
    images = np.asarray(source.images, dtype=np.float64) / 16.0  # gray levels 0 to 16
    labels = check_labels(source.target, CLASSES, "scikit-learn's digits")
    if size != images.shape[1]:
        images = resize_bilinear(images, size, size)
    scaled: FloatArray = images.astype(np.float32)[:, None]
    order = random.permutation(seed, "digits/split", SAMPLES)
    train, test = np.sort(order[:TRAIN_SAMPLES]), np.sort(order[TRAIN_SAMPLES:])
    return image_dataset(
        name,
        (scaled[train], labels[train]),
        (scaled[test], labels[test]),
        classes=CLASSES,
        description={
            "source": "scikit-learn's load_digits",
            "split": f"random, {len(train)} for training and {len(test)} for testing",
            "split_seed": seed,
            "train_indices_sha256": hashlib.sha256(train.astype("<i8").tobytes()).hexdigest(),
            "test_indices_sha256": hashlib.sha256(test.astype("<i8").tobytes()).hexdigest(),
        },
    )
