"""Which rounds of a heat were quiet for a launch: by the others, so that its own time decides about none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
QUIET_SHARE = 0.5  # of the rounds
FEWEST_QUIET = 3  # rides in quiet rounds, that a step time is taken from; below, all rounds count


def slowness_of_others(medians: FloatArray) -> FloatArray:
    """ln(how slow the others were, each against its own median), of (rounds, launches) median steps; NaN
    where nobody else rode."""
    logs = np.log(medians)
    known = np.isfinite(logs).any(axis=0)
    slower = np.full_like(logs, np.nan)
    slower[:, known] = logs[:, known] - np.nanmedian(logs[:, known], axis=0)
    rode, sums = np.isfinite(slower), np.nansum(slower, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nobody else rode
        return np.asarray((sums - np.nan_to_num(slower)) / (rode.sum(axis=1, keepdims=True) - rode))


def counted_rounds(rode: BoolArray, others: FloatArray) -> BoolArray:
    """From which rounds the step time of a launch is taken: the half that was quieter for the others, by
    ln(how slow they were); all of its own where it rode in too few of these, or with nobody."""
    known = np.flatnonzero(np.isfinite(others))
    kept = int(np.ceil(QUIET_SHARE * len(known)))
    quiet = np.zeros(len(rode), np.bool_)
    quiet[known[np.argsort(others[known], kind="stable")[:kept]]] = True
    return rode & quiet if np.count_nonzero(rode & quiet) >= FEWEST_QUIET else rode
