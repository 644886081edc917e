"""The recipe that a proof adds to the workload's own: everything that hides at its beginning is made to show.

Biases that are 0 and weights that hardly move hide what depends on them. So the same network is built once
more, by an ordinary job that says nothing of its purpose, with weights that were shaken, biases that are not
0, a rate that moves every weight by some percent in each step, momentum and decay, and a batch of another
shape.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from timetrial.cases.case import Workload
from timetrial.core import random
from timetrial.proof.judge import JUDGING, Judge, reference_images
from timetrial.proof.observed import Batches, Tensors, rows_of
from timetrial.proof.parts import part_of
from timetrial.workloads import Prepared, prepare
from timetrial.workloads.cache import Entry, cached

SHAKE = 0.3  # of a weight: how far it is moved at most
BIAS = 0.1  # how large a bias is at most
MOMENTUM = 0.9
WAY = 0.02  # of the weights, that the first step leads
FEWEST = 3  # images in its batch
DECAY_SHARE = 0.3  # of the gradient, that the decay is at first


def stressed(workload: Workload, prepared: Prepared, seed: int) -> Prepared:
    """The same network with shaken parameters, in a batch of another size, with the workload's optimizer
    still (`with_recipe` changes it). InputError as prepare() raises it."""
    assert prepared.batch_size is not None
    assert prepared.network is not None
    part, images = part_of(prepared.network), reference_images(prepared.network)
    other = replace(workload, batch_size=other_size(prepared.batch_size, prepared.samples, part, images))
    made = prepare(other, seed=seed, epochs=1)
    job = copy.deepcopy(made.job)
    entry = _shaken(job["network"]["nodes"], seed)
    for node in job["network"]["nodes"]:
        for parameter in node["parameters"]:
            parameter["file"] = str(entry.file(f"{parameter['name']}.npy"))
    return replace(made, job=job)


def other_size(batch_size: int, samples: int, part: int, images: int) -> int:
    """Half of it and one more, or as many `images` as `reference` can judge: another shape, odd for most,
    which threads cannot share equally. A batch of one or two becomes three, as far as there are samples. One
    that is judged on part of it (parts.py) becomes another multiple of that part, unless three images are not
    too many for `reference`."""
    if FEWEST <= images <= batch_size // 2:
        return min(samples, images - 1 + images % 2)
    if part < batch_size:
        multiple = part * (batch_size // (2 * part) + 1)
        return multiple if multiple < batch_size else part
    return min(samples, batch_size // 2 + 1 if batch_size > 2 else 3)


def with_recipe(prepared: Prepared, judge: Judge) -> Prepared:
    """With the rate and the decay that move these weights by some percent, as the judge's gradient says."""
    parameters: Tensors = {
        parameter["name"]: np.load(parameter["file"])
        for node in prepared.job["network"]["nodes"]
        for parameter in node["parameters"]
    }
    assert prepared.network is not None
    batch = Batches(prepared.job["streams"]).batch("proof", 0)
    part = part_of(prepared.network)  # enough of the batch to find a rate by
    with JUDGING:
        gradient = judge.gradient(parameters, rows_of(batch, slice(part))).gradient
    sizes = [
        (float(np.linalg.norm(parameters[name])), float(np.linalg.norm(gradient[name])))
        for name in parameters
        if parameters[name].ndim > 1
    ]
    ratios = [weight / slope for weight, slope in sizes if weight > 0 and slope > 0] or [1.0]
    typical = float(np.median(ratios))
    optimizer = {
        **prepared.job["optimizer"],
        "learning_rate": _rounded(WAY * typical),
        "momentum": MOMENTUM,
        "weight_decay": _rounded(DECAY_SHARE / typical),
    }
    return replace(prepared, job={**prepared.job, "optimizer": optimizer})


def _rounded(number: float) -> float:
    """To two digits: a number that can be read in the record."""
    return float(f"{number:.1e}")


def _shaken(nodes: list[Mapping[str, Any]], seed: int) -> Entry:
    files = {one["name"]: (one["file"], one["shape"]) for node in nodes for one in node["parameters"]}

    def make() -> Mapping[str, Any]:
        content = {}
        for name, (file, shape) in files.items():
            noise = random.uniform(seed, f"stress/{name}", tuple(shape), -1.0, 1.0)
            values = np.load(file, allow_pickle=False)
            is_bias = len(shape) < 2
            content[name] = (BIAS * noise if is_bias else values * (1 + SHAKE * noise)).astype(np.float32)
        return content

    recipe = {
        "of": {name: file for name, (file, _) in files.items()},
        "seed": seed,
        "shake": SHAKE,
        "bias": BIAS,
    }
    return cached("stress", recipe, make)
