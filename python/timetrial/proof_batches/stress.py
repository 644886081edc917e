"""The recipe that a proof adds to the workload's own: everything that hides at its beginning is made to show.

Biases that are 0 and weights that hardly move hide what depends on them. So the same network is built once
more, by an ordinary job that says nothing of its purpose, with weights that were shaken, biases that are not
0, a rate that moves every weight by some percent in each step (less where it would fly off), momentum and
decay, and an epsilon as large as the root it stands beside, so that its place shows. Where the workload has
a schedule, the rate jumps from step to step; where it clips, every gradient is clipped.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from timetrial import npy
from timetrial.agreement.sizes import norm
from timetrial.cases.case import Workload
from timetrial.core import random
from timetrial.optimizers import OPTIMIZERS
from timetrial.proof.judge import Judge, asking
from timetrial.proof.same_for_all import once
from timetrial.questions.observed import Batches, Tensors, rows_of
from timetrial.workloads import Prepared, prepare
from timetrial.workloads.cache import Entry, cached
from timetrial.workloads.material import rates_file

SHAKE = 0.3  # of a weight: how far it is moved at most
BIAS = 0.1  # how large a bias is at most
MOMENTUM = 0.9
WAY = 0.02  # of the weights, that the first step leads
# What the first step of SGD may do at most, or the next ones go so far off that they are all rounding:
MOST_OF_BIAS = 0.5  # move a bias by: a softmax of ones and zeros
MOST_OF_LOSS = 0.5  # of the loss, by its slope, lead away: steps too long for the valley climb its other side
RATES = (1.0, 0.4, 0.7, 1.3)  # of the rate, in turns, where there is a schedule
RATE_STEPS = 1000
CLIPPED = 0.5  # of the norm of the first gradients, where they are clipped
DECAY_SHARE = 0.3  # of the gradient, that the decay is at first


def stressed(workload: Workload, prepared: Prepared, seed: int) -> Prepared:
    """The same network with shaken parameters, with the workload's optimizer still (`with_recipe` changes
    it). InputError as prepare() raises it."""
    # The recipe has rates of its own.
    optimizer = {key: value for key, value in workload.optimizer.items() if key != "schedule"}
    other = replace(workload, optimizer=optimizer)
    made = prepare(other, seed=seed, epochs=1)
    job = copy.deepcopy(made.job)
    job["optimizer"] = prepared.job["optimizer"]
    entry = _shaken(job["network"]["nodes"], seed)
    for node in job["network"]["nodes"]:
        for parameter in node["parameters"]:
            parameter["file"] = str(entry.file(f"{parameter['name']}.npy"))
    return replace(made, job=job)


def with_recipe(prepared: Prepared, judge: Judge) -> Prepared:
    """With the rate and the decay that move these weights by some percent, as the judge's gradient says."""
    parameters: Tensors = {
        parameter["name"]: npy.load(parameter["file"])
        for node in prepared.job["network"]["nodes"]
        for parameter in node["parameters"]
    }
    batch = Batches(prepared.job["streams"]).batch("proof", 0)
    part = judge.network.batch_size  # enough of the batch to find a rate by
    rows, given = rows_of(batch, slice(part)), prepared.job["optimizer"]

    def ask() -> dict[str, Any]:
        answer = judge.gradient(parameters, rows)
        trained = {name: parameters[name] for name in answer.gradient}
        return _optimizer(given, trained, answer.gradient, answer.loss)

    with asking():
        # Rates lie in a file, which somebody may have removed since they were answered.
        optimizer = ask() if "rates" in given else once(f"recipe {given!r}", judge, parameters, rows, ask)
    return replace(prepared, job={**prepared.job, "optimizer": optimizer})


def _optimizer(
    given: Mapping[str, Any], parameters: Tensors, gradient: Tensors, loss: float
) -> dict[str, Any]:
    """The same rule with numbers that show what it does. `loss`: where the gradient is taken."""
    sizes = [
        (norm(parameters[name]), norm(gradient[name])) for name in parameters if parameters[name].ndim > 1
    ]
    ratios = [weight / slope for weight, slope in sizes if weight > 0 and slope > 0] or [1.0]
    typical = float(np.median(ratios))  # the size of a weight over that of its gradient
    elements = sum(one.size for one in gradient.values())
    size = math.sqrt(sum(float(np.sum(np.square(one, dtype=np.float64))) for one in gradient.values()))
    root = size / math.sqrt(elements)  # of the mean square of a gradient
    weights = math.sqrt(
        sum(float(np.sum(np.square(one, dtype=np.float64))) for one in parameters.values()) / elements
    )
    made = dict(given)
    name = given["name"]
    decay = DECAY_SHARE / typical
    if name == "sgd":
        rate = _rate(WAY * typical, gradient, size, loss)
        made |= {"learning_rate": _rounded(rate), "momentum": MOMENTUM}
    else:
        # A step of these has the size of the rate, whatever the gradient's is; Adadelta's that of the root of
        # its epsilon.
        made["epsilon"] = _rounded(root * root if name == "adadelta" else root)
        made["learning_rate"] = _rounded(WAY * weights / (root if name == "adadelta" else 1))
    if OPTIMIZERS[name].decoupled or given.get("decoupled"):
        decay = DECAY_SHARE * WAY / made["learning_rate"]
    made["weight_decay"] = _rounded(decay)
    if "clip_norm" in given:
        made["clip_norm"] = _rounded(CLIPPED * size)
    if "rates" in given:
        values = made["learning_rate"] * np.array([RATES[step % len(RATES)] for step in range(RATE_STEPS)])
        made["rates"] = str(rates_file(values))
    return made


def _rate(wanted: float, gradient: Tensors, size: float, loss: float) -> float:
    """Of SGD: the wanted one, or the largest within the limits. `size`: of the whole gradient."""
    steepest = max((float(np.abs(one).max()) for one in gradient.values() if one.ndim < 2), default=0.0)
    limits = [(MOST_OF_BIAS, steepest), (MOST_OF_LOSS * abs(loss), size * size)]
    return min([wanted, *(most / slope for most, slope in limits if most > 0 and slope > 0)])


def _rounded(number: float) -> float:
    """To two digits: a number that can be read in the record."""
    return float(f"{number:.1e}")


def _shaken(nodes: list[Mapping[str, Any]], seed: int) -> Entry:
    all_of = [one for node in nodes for one in node["parameters"]]

    def make() -> Mapping[str, Any]:
        content = {}
        for one in all_of:
            noise = random.uniform(seed, f"stress/{one['name']}", tuple(one["shape"]), -1.0, 1.0)
            values = npy.load(one["file"])
            if one["role"] == "state":  # a variance stays above 0
                shaken = values * (1 + SHAKE * noise) + BIAS * np.abs(noise)
            elif len(one["shape"]) < 2:
                shaken = values * (1 + SHAKE * noise) + BIAS * noise
            else:
                shaken = values * (1 + SHAKE * noise)
            content[one["name"]] = shaken.astype(np.float32)
        return content

    recipe = {
        "of": {one["name"]: one["file"] for one in all_of},
        "seed": seed,
        "shake": SHAKE,
        "bias": BIAS,
    }
    return cached("stress", recipe, make)
