"""Random numbers that are the same everywhere: weights and orders.

Philox4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011). The key is the seed, the upper half of the counter the 64-bit FNV-1a hash of the stream's name. A
draw depends on seed, stream and place only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.core import _core
from timetrial.errors import InputError


def _seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise InputError(f"seed = {seed}; expected a whole number from 0 to 2^64 - 1")
    return seed


def uniform(
    seed: int, stream: str, shape: Sequence[int], low: float = 0.0, high: float = 1.0
) -> NDArray[np.float32]:
    """f32 in [low, high)."""
    return _core.uniform(_seed(seed), stream, list(shape), low, high)


def initial_values(seed: int, parameter: Mapping[str, Any]) -> NDArray[np.float32]:
    """What a parameter of a network (`Network.parameters`) is before the first step, by its initializer:
    `zeros`, `ones`, `forget_ones` (1 for the second of four gates, 0 for the others), `glorot_uniform` (in
    +-sqrt(6 / (fan_in + fan_out)), Glorot and Bengio 2010) or `he_uniform` (in +-sqrt(6 / fan_in), He et al.
    2015)."""
    keys = ("initializer", "fan_in", "fan_out")
    return _core.initial_values(
        _seed(seed), parameter["name"], list(parameter["shape"]), *(parameter[key] for key in keys)
    )


def permutation(seed: int, stream: str, n: int) -> NDArray[np.int64]:
    """0 ... n-1 in random order (Fisher and Yates, without bias)."""
    return _core.permutation(_seed(seed), stream, n)
