"""Images with class structure that need no files, so that learning can be proven on any machine.

Each class has a smooth random prototype. An image is the prototype of its class, shifted by up to a few
pixels, with its own contrast and with noise. Shifts are what make it more than a lookup.
"""

from __future__ import annotations

import numpy as np

from timetrial.core import random
from timetrial.dataset_files.dataset import Dataset, FloatArray, IntArray, image_dataset
from timetrial.datasets.resize import resize_bilinear

CLASSES = 10
TRAIN_SAMPLES, TEST_SAMPLES = 4096, 1024
FEW, IMAGENET_CLASSES = (256, 64), 1000  # where an image has 150,528 numbers
COARSE = 7  # prototypes are drawn on a grid of 7x7 and made smooth
SHIFT = 3  # pixels in each direction
# From the faintest image to the clearest: a linear classifier gets about nine of ten right. Three channels
# show a class more plainly than one.
CONTRAST = {1: (0.2, 0.6), 3: (0.12, 0.4)}
NOISE = 0.25  # standard deviation of the added noise, pixels being in [0, 1]


def load_synthetic(folder: str | None, seed: int) -> Dataset:
    """Images (1, 28, 28)."""
    return _load("synthetic", (1, 28, 28), seed)


def load_synthetic_cifar(folder: str | None, seed: int) -> Dataset:
    """Images (3, 32, 32)."""
    return _load("synthetic-cifar", (3, 32, 32), seed)


def load_synthetic_imagenet(name: str, size: int, folder: str | None, seed: int) -> Dataset:
    """Images (3, size, size) for networks with a thousand outputs. Samples of each would take gigabytes:
    CLASSES of them occur, spread over all labels."""
    return _load(name, (3, size, size), seed, samples=FEW, classes=IMAGENET_CLASSES)


def _load(
    name: str,
    shape: tuple[int, int, int],
    seed: int,
    samples: tuple[int, int] = (TRAIN_SAMPLES, TEST_SAMPLES),
    classes: int = CLASSES,
) -> Dataset:
    prototypes = _prototypes(name, shape, seed)
    train_images, train_labels = _draw(f"{name}/train", prototypes, shape, samples[0], seed)
    test_images, test_labels = _draw(f"{name}/test", prototypes, shape, samples[1], seed)
    apart = classes // CLASSES
    return image_dataset(
        name,
        (train_images, train_labels * apart),
        (test_images, test_labels * apart),
        classes=classes,
        description={
            "source": "generated: smooth class prototypes, shifted, with noise",
            "split": f"{samples[0]} for training and {samples[1]} for testing, drawn apart",
            "split_seed": seed,
            "shift_pixels": SHIFT,
            "contrast": list(CONTRAST[shape[0]]),
            "noise": NOISE,
        },
    )


def _prototypes(name: str, shape: tuple[int, int, int], seed: int) -> FloatArray:
    """(CLASSES, C, H + 2 SHIFT, W + 2 SHIFT) in [0, 1]."""
    channels, height, width = shape
    coarse = random.uniform(seed, f"{name}/prototypes", (CLASSES * channels, COARSE, COARSE), 0.0, 1.0)
    smooth = resize_bilinear(coarse.astype(np.float64), height + 2 * SHIFT, width + 2 * SHIFT)
    return smooth.astype(np.float32).reshape(CLASSES, channels, height + 2 * SHIFT, width + 2 * SHIFT)


def _draw(
    stream: str, prototypes: FloatArray, shape: tuple[int, int, int], samples: int, seed: int
) -> tuple[FloatArray, IntArray]:
    channels, height, width = shape
    # As many of each class as possible, in random order.
    labels: IntArray = random.permutation(seed, f"{stream}/labels", samples) % CLASSES
    shifts = random.uniform(seed, f"{stream}/shifts", (2, samples), 0.0, 2 * SHIFT + 1).astype(np.int64)
    shifts = np.minimum(shifts, 2 * SHIFT)
    contrast = random.uniform(seed, f"{stream}/contrast", (samples, 1, 1), *CONTRAST[channels])
    # Uniform noise: the same bits on every machine, which logarithms and sines would not promise.
    reach = NOISE * 3.0**0.5
    images: FloatArray = random.uniform(
        seed, f"{stream}/noise", (samples, channels, height, width), -reach, reach
    )
    rows = shifts[0][:, None, None] + np.arange(height)[None, :, None]
    columns = shifts[1][:, None, None] + np.arange(width)[None, None, :]
    for channel in range(channels):
        images[:, channel] += 0.5 + contrast * (
            prototypes[labels[:, None, None], channel, rows, columns] - 0.5
        )
    np.clip(images, 0.0, 1.0, out=images)
    return images, labels
