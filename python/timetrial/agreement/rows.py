"""Rows of a layer's gradients, one for each output channel: of matrices and vectors together, each over its
own size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import Doubles

OFF_ROW = 0.02  # of the row that is off most
STANDS_OUT = 4.0  # of the median of rows
ELSEWHERE = 0.02  # of what a look shows, that may show in rows that it was not for
UNSEEN = 1e-6  # of a layer's gradients: what a nudge does by its size

Gradients = Mapping[str, Doubles]


def off_rows(rest: Gradients) -> NDArray[np.bool_] | None:
    """Which output channels of a layer are off; None where its gradients have no such rows."""
    if len({values.shape[0] for values in rest.values()}) != 1:
        return None
    squares = _row_squares(rest)
    return squares >= OFF_ROW**2 * np.max(squares)


def standing_out(rest: Gradients, limit: float) -> NDArray[np.bool_]:
    """Which output channels are farther off than rounding makes the others, and by no less than a tenth of
    the `limit` for all of a layer."""
    squares = _row_squares(rest)
    return squares > max(STANDS_OUT**2 * np.median(squares), (limit / 10) ** 2)


def is_apart(made: Gradients, channels: Sequence[int]) -> bool:
    """Whether a look at one decision of each of these channels shows in their rows alone."""
    squares = _row_squares(made)
    inside = np.max(squares[channels])
    return float(np.sum(np.delete(squares, channels))) <= max(ELSEWHERE**2 * inside, UNSEEN**2)


def _row_squares(tensors: Gradients) -> NDArray[np.float64]:
    flat = [values.reshape(len(values), -1) for values in tensors.values()]
    squares: NDArray[np.float64] = np.sum([np.einsum("ij,ij->i", one, one) for one in flat], axis=0)
    return squares
