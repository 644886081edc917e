"""Bilinear resizing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def resize_bilinear(images: npt.NDArray[np.float64], height: int, width: int) -> npt.NDArray[np.float64]:
    """Images (n, H, W) to (n, height, width), with pixel centers at half-integers and edges repeated.

    Element by element and in a fixed order, so that every machine gets the same bits.
    """
    return _along(_along(images, 1, height), 2, width)


def _along(images: npt.NDArray[np.float64], axis: int, size: int) -> npt.NDArray[np.float64]:
    old = images.shape[axis]
    position = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0.0, old - 1.0)
    lower = np.minimum(np.floor(position).astype(np.int64), max(old - 2, 0))
    upper = np.minimum(lower + 1, old - 1)
    weight = (position - lower).reshape([-1 if axis == dimension else 1 for dimension in range(images.ndim)])
    result: npt.NDArray[np.float64] = (
        images.take(lower, axis) * (1.0 - weight) + images.take(upper, axis) * weight
    )
    return result
