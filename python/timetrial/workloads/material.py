"""What a contender reads: data, initial weights, order, proof batches. All through the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timetrial.core import random
from timetrial.workloads.cache import Content, Entry, cached
from timetrial.workloads.datasets import dataset_source, load_dataset
from timetrial.workloads.datasets.files import file_hashes

PROOF_BATCHES = 5
SPLIT_SEED = (
    0  # every launch of every experiment sees the same split; weights and order follow the launch's seed
)


def data_entry(name: str, folder: str | None) -> Entry:
    """train_images, train_labels, test_images, test_labels and the table `dataset`.

    A dataset of files is keyed by what is in them, so other files under the same name are another entry.
    """
    source = dataset_source(name)
    files = file_hashes(source.files(folder)) if source.files else {}

    def make() -> Content:
        data = load_dataset(name, folder, SPLIT_SEED)
        return {
            "train_images": data.train_images,
            "train_labels": data.train_labels,
            "test_images": data.test_images,
            "test_labels": data.test_labels,
            "dataset": {"classes": data.classes, **data.description},
        }

    return cached(
        "data", {"dataset": name, "version": source.version, "seed": SPLIT_SEED, "files": files}, make
    )


def weights_entry(parameters: Sequence[Mapping[str, Any]], seed: int) -> Entry:
    """One array per parameter, under its name: Glorot-uniform weights, zero biases.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward networks" (2010).
    """
    shapes = {
        str(parameter["name"]): [int(extent) for extent in parameter["shape"]] for parameter in parameters
    }

    def make() -> Content:
        return {
            name: np.zeros(shape, dtype=np.float32)
            if len(shape) < 2
            else random.glorot_uniform(seed, name, tuple(shape))
            for name, shape in shapes.items()
        }

    return cached("weights", {"parameters": shapes, "seed": seed, "scheme": "glorot_uniform"}, make)


def order_entry(samples: int, batch_size: int, epochs: int, seed: int) -> Entry:
    """`order`, i64 (epochs * batches, batch_size): a permutation per epoch, cut into full batches.

    What does not fill a batch is left out of its epoch; every epoch leaves out other samples.
    """
    batches = samples // batch_size

    def make() -> Content:
        rows = [
            random.permutation(seed, f"order/{epoch}", samples)[: batches * batch_size].reshape(
                batches, batch_size
            )
            for epoch in range(epochs)
        ]
        return {"order": np.concatenate(rows).astype(np.int64, copy=False)}

    recipe = {"samples": samples, "batch_size": batch_size, "epochs": epochs, "seed": seed}
    return cached("order", recipe, make)


def proof_entry(image_shape: Sequence[int], batch_size: int, classes: int, seed: int) -> Entry:
    """`images`, `labels` and `order` of PROOF_BATCHES random batches; `other_order` begins with the last one;
    the images of `label_order` all have one label, and some come more than once.

    Pixels are uniform in [0, 1) and all different within an image: where two are equal, two correct
    frameworks may send a maximum's gradient to different places.
    """
    samples = PROOF_BATCHES * batch_size
    size = int(np.prod(image_shape))

    def make() -> Content:
        # One draw from each of `size` equal intervals, in random order; the outer quarters stay free.
        rank = np.argsort(
            random.uniform(seed, "proof/rank", (samples, size), 0.0, 1.0), axis=1, kind="stable"
        )
        within = random.uniform(seed, "proof/within", (samples, size), 0.25, 0.75).astype(np.float64)
        images = ((rank + within) / size).astype(np.float32).reshape(samples, *image_shape)
        labels = random.uniform(seed, "proof/labels", (samples,), 0.0, float(classes)).astype(np.int64)
        order = np.arange(samples, dtype=np.int64).reshape(PROOF_BATCHES, batch_size)
        return {
            "images": images,
            "labels": np.minimum(labels, classes - 1),
            "order": order,
            "other_order": np.ascontiguousarray(order[::-1]),
            "label_order": np.resize(np.flatnonzero(labels == labels[0]), (1, batch_size)),
        }

    recipe = {"shape": list(image_shape), "batch_size": batch_size, "classes": classes, "seed": seed}
    return cached("proof-3", recipe, make)


def fingerprint(content: object) -> str:
    """Sixteen hex digits of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
