"""Steps of a known length on the BLAS that NumPy brings: 20 matrix products, or 21."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SIZE = (
    192  # as in the measurements behind the design: threads are used, and 20 products take some milliseconds
)


def products_20() -> Callable[[], None]:
    """A step of 20 products."""
    return _products(20)


def products_21() -> Callable[[], None]:
    """A step of 21: 5 % more."""
    return _products(21)


def _products(count: int) -> Callable[[], None]:
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))
    out = np.empty_like(left)

    def step() -> None:
        for _ in range(count):
            np.matmul(left, right, out=out)

    return step
