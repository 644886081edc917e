"""How far sums in f32 may be from those in double precision, by how many terms they have.

A sum of n terms, added one after the other, is off by c n**0.5 u of the size of its terms, u = 2^-24, where
roundings are as likely up as down: with c = 2 hardly ever by more (Higham and Mary, A new approach to
probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019, theorem 2.4: by more than c n**0.5 u
with a chance of 2 n exp(-c**2 / 2), which for one of thousands of sums is a bound for all of them together).
Sums in several parts are nearer. Each product, and the factors that a fast algorithm of convolution makes of
its inputs, add a constant: F(4x4, 3x3) of Winograd is off by about ten u (Barabasz et al., Error analysis
and improving the accuracy of Winograd convolution for DNNs, ACM TOMS 46, 2020).

All limits are Euclidean, of a whole tensor, and absolute: parts of the sizes of the terms, of which a sum
that cancels keeps little.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import UNIT, norm, wide

CONSTANT = 16.0  # units, of a product and what is made of its factors
PER_ROOT = 2.0  # units, times the root of the number of terms
OF_FUNCTION = 64.0  # units: of exp and tanh as fast libraries approximate them
# Of a gradient that comes through normalizations, times the root of the largest number of values in a
# channel of a batch: each of them takes away the mean of a gradient and what lies along its own values,
# sums of that many terms, which are the same in all of a channel.
PER_ROOT_BACK = 6.0


def of_terms(count: float) -> float:
    """By how many parts of the size of its terms a sum of so many is off."""
    return UNIT * (CONSTANT + PER_ROOT * math.sqrt(count))


def of_products(x: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any] | None, spacing: float) -> float:
    """The size of the terms of all outputs of a layer that sums up products of its inputs (N, C, ...) or
    (..., F) with its weight (O, C / groups, ...): as large as the outputs where the terms are as likely of
    one sign as of the other. `spacing`: how many places of the input one of the output stands for."""
    if weight.ndim == 2 and x.shape[-1] != weight.shape[1]:
        x = x.reshape(len(x), -1)
    axis = 1 if weight.ndim > 2 else x.ndim - 1
    of_x = energies(x, axis)
    within = weight.shape[1]
    groups = len(of_x) // within
    of_weight = energies(weight.reshape(groups, -1, within, math.prod(weight.shape[2:])), 0, 2).ravel()
    total = float(np.dot(of_x, of_weight)) / spacing
    if bias is not None:
        total += norm(bias) ** 2 * x.size / (len(of_x) * spacing)
    return math.sqrt(total)


def of_normalization(
    x: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any], epsilon: float, times: float
) -> NDArray[np.float64]:
    """Of each channel of a normalization over the batch, each of whose samples in x (N, C, ...) comes so many
    `times`. Mean and variance are sums over a channel, and the variance may come of the mean of squares less
    the square of the mean: a mean that is large beside the deviation takes places off it twice."""
    count = x.size / x.shape[1]
    mean = sum(np.sum(wide(one).reshape(x.shape[1], -1), axis=1) for one in x) / count
    apart = mean.reshape(-1, *(1 for _ in x.shape[2:]))
    variance = sum(energies(one - apart, 0) for one in x) / count
    size = np.sqrt(variance + mean**2)
    divisor = np.sqrt(variance + epsilon)
    ratio = size / divisor
    sums = UNIT * (CONSTANT + math.sqrt(count * times))
    stretched = np.minimum(sums / 2 * (1 + 2 * ratio**2), 1.0) * np.sqrt(variance) / divisor
    off = np.abs(weight) * (sums * ratio + stretched) + 4 * UNIT * (np.abs(weight) * ratio + np.abs(bias))
    found: NDArray[np.float64] = math.sqrt(count) * off
    return found


def of_gradient(tolerance: float, values: int) -> float:
    """By what part of itself a gradient may be off that has come through normalizations over so many values
    of a channel, at most; 0: through none."""
    return tolerance + PER_ROOT_BACK * UNIT * math.sqrt(values)


def energies(array: NDArray[Any], *axes: int) -> NDArray[np.float64]:
    """Sums of squares by places along these axes."""
    flat = np.moveaxis(wide(array), axes, range(len(axes)))
    shape = flat.shape[: len(axes)]
    flat = flat.reshape(math.prod(shape), -1)
    found: NDArray[np.float64] = np.einsum("ij,ij->i", flat, flat)
    return found.reshape(shape)
