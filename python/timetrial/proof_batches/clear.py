"""Batches of the proof in which no decision lies within rounding of its edge, as far as there are such
images.

Who is clear is known at the initial values only; what later steps turn must be shown (flips.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial import npy
from timetrial.proof.flips import CLEAR_MARGIN, edges_of
from timetrial.proof.judge import Judge, asking
from timetrial.proof.parts import part_of, repeated
from timetrial.questions.observed import Tensors, rows_of, sample_count, samples_of
from timetrial.workloads import Prepared
from timetrial.workloads.cache import cached
from timetrial.workloads.material import PROOF_ORDERS

# Multiply-accumulates of the forward passes; above that the images are taken as they come.
CHOICE_LIMIT = 4_000_000_000


def with_clear_batches(prepared: Prepared, judge: Judge) -> Prepared:
    """The same workload with proof streams whose first batches are clear at its initial values, of fewer
    different images where the network is large (parts.py)."""
    assert prepared.network is not None
    streams = prepared.job["streams"]
    files = {
        one["name"]: one["file"] for node in prepared.job["network"]["nodes"] for one in node["parameters"]
    }
    samples = samples_of(streams["proof"])
    count = sample_count(samples)
    per_image = prepared.network.multiply_accumulates("forward") / prepared.network.batch_size
    # One image says nothing about a layer that looks at the whole batch.
    is_chosen = per_image * count <= CHOICE_LIMIT and not prepared.network.couples_batch
    part = part_of(prepared.network)
    if not is_chosen and part == prepared.network.batch_size:
        return prepared
    recipe = {
        "network": prepared.network.to_job(),
        "parameters": files,
        "proof": {name: streams[name] for name in PROOF_ORDERS},
        "margin": CLEAR_MARGIN if is_chosen else None,
        "part": part,
    }

    def make() -> Mapping[str, Any]:
        parameters = {name: npy.load(file) for name, file in files.items()}
        with asking():
            is_clear = _clear(judge, parameters, samples) if is_chosen else np.ones(count, bool)
        return {
            word: repeated(_chosen(npy.load(streams[name]["order"]), is_clear), part)
            for name, word in PROOF_ORDERS.items()
        }

    entry = cached("clear", recipe, make)
    chosen = {
        name: {**streams[name], "order": str(entry.file(f"{word}.npy"))}
        for name, word in PROOF_ORDERS.items()
    }
    return replace(prepared, job={**prepared.job, "streams": {**streams, **chosen}})


def _clear(judge: Judge, parameters: Tensors, samples: Tensors) -> NDArray[np.bool_]:
    witness = judge.witness()
    witness.load(parameters)
    found = []
    for number in range(sample_count(samples)):
        activation = witness.gradient(rows_of(samples, [number]), {}).activation
        found.append(next(edges_of(witness.nodes, activation, CLEAR_MARGIN), None) is None)
    return np.array(found)


def _chosen(order: NDArray[np.int64], is_clear: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The same images, those that are clear first; where there are too few for one batch, as they were."""
    images = order.ravel()
    clear = images[is_clear[images]]
    if len(order) == 1 and len(clear):
        return np.resize(clear, order.shape)
    if len(clear) < order.shape[1]:
        return order
    return np.concatenate([clear, images[~is_clear[images]]]).reshape(order.shape)
