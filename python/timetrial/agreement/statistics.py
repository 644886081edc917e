"""What rounding makes of the sums of a normalization over the batch, forward and back: the same in all of a
channel, so that it doesn't average out behind, as that of single values does.

A sum of n f32 terms of one sign, one after the other, is off by n**0.5 / 3 units in the root mean square.
oneDNN and TensorFlow sum up like that, PyTorch in several parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import UNIT

PLACES = 16 * UNIT  # of each value: what sums of some hundred terms are off by in f32
UNIFORM = math.sqrt(3)  # the bound of uniform noise over its root mean square

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Normalization:
    """`size`, `variance`: of what goes into it, channel by channel, the first the root mean square. `off`:
    its statistics, of the sizes of their terms, as the bound of uniform noise of that size."""

    weight: str
    bias: str
    running_mean: str
    running_var: str
    momentum: float
    off: float
    size: NDArray[Any]
    variance: NDArray[Any]


def normalizations(
    nodes: Sequence[Mapping[str, Any]], activation: Mapping[str, NDArray[Any]], times: int
) -> list[Normalization]:
    """Those of a network, whose images come so many `times` each."""
    found = []
    for node in nodes:
        if node["kind"] != "batch_norm":
            continue
        values = activation[node["inputs"][0]]
        others = tuple(axis for axis in range(values.ndim) if axis != 1)
        weight, bias, running_mean, running_var = (one["name"] for one in node["parameters"])
        found.append(
            Normalization(
                weight=weight,
                bias=bias,
                running_mean=running_mean,
                running_var=running_var,
                momentum=node["attributes"]["momentum"],
                off=UNIFORM * UNIT * math.sqrt(times * values.size / values.shape[1]) / 3,
                size=np.sqrt(np.mean(values**2, axis=others)),
                variance=np.var(values, axis=others),
            )
        )
    return found


def sum_places(images: int, plane: int) -> float:
    """By how much of the sizes of its terms a sum over a channel is off on the way back, as the bound of
    uniform noise. Behind a mean over the image all terms of an image are alike, and so are their roundings:
    only those of different images are as likely up as down. That is a quarter of plane * images**0.5 in the
    root mean square: 1,568 units for 64 images of 28x28, where oneDNN 3.2 was off by 956."""
    return max(PLACES, UNIFORM * UNIT * plane * math.sqrt(images) / 4)


def weights_off(found: Sequence[Normalization], parameters: Arrays) -> Arrays:
    """As if weights and biases were so large that last places of them do what the rounding of statistics
    does: the variance stretches a channel, the mean shifts it."""
    sizes: Arrays = {}
    for one in found:
        weight, bias = np.abs(parameters[one.weight]), np.abs(parameters[one.bias])
        spread = np.sqrt(np.where(one.variance > 0, one.variance, np.inf))
        sizes[one.weight] = weight * max(1.0, one.off / PLACES / 2)
        sizes[one.bias] = np.maximum(bias, weight * one.size / spread * one.off / PLACES)
    return sizes


def states_off(found: Sequence[Normalization]) -> Arrays:
    """By how much the statistics themselves are off where they go into the running ones, channel by
    channel."""
    off: Arrays = {}
    for one in found:
        off[one.running_mean] = one.momentum * one.off * one.size
        off[one.running_var] = one.momentum * one.off * one.variance
    return off
