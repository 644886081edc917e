"""The ratio of two totals: of what all turns of a launch took, over those of another that rode beside it.

Whatever a step does now and then counts with its share, wherever in a turn it comes; a median or a trimmed
mean of turns would leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FEWEST = 4  # rounds that a scatter is taken from


def log_ratio(
    base: npt.NDArray[np.float64] | Sequence[float], challenger: npt.NDArray[np.float64] | Sequence[float]
) -> float:
    """ln(mean of challenger / mean of base), of positive times."""
    return math.log(float(np.mean(challenger)) / float(np.mean(base)))


def scatter_of_totals(
    base: npt.NDArray[np.float64] | Sequence[float], challenger: npt.NDArray[np.float64] | Sequence[float]
) -> float | None:
    """The standard deviation of one round, for which log_ratio() of n rounds has the standard error
    scatter / sqrt(n); None for fewer than FEWEST rounds.

    By linearization (Cochran, "Sampling Techniques", 3rd ed., section 6.4): what made a round slow for both
    cancels.
    """
    own, other = np.asarray(challenger, np.float64), np.asarray(base, np.float64)
    if len(own) < FEWEST:
        return None
    return float(np.std(own / own.mean() - other / other.mean(), ddof=1))
