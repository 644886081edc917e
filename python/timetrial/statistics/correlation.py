"""How many independent samples a series of steps is worth.

Steps of one launch resemble their neighbors, so that n of them carry the information of fewer. For a
quantile what counts is the correlation of the 0/1 series "below the quantile". Its integrated
autocorrelation time comes from Geyer's initial monotone positive sequence: sums of neighboring
autocorrelations, as long as they are positive, each at most the one before (Geyer, "Practical Markov Chain
Monte Carlo", Statistical Science 7, 1992).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STAGES = (8, 4096)  # lags that are looked at first: few series are correlated beyond
_FRAME = 1 << 15  # values of which the transform stays in a processor's cache


def autocorrelation_time(series: npt.NDArray[np.float64]) -> float:
    """At least 1: one independent sample in so many."""
    if len(series) < 4:
        return 1.0
    centered = np.asarray(series - series.mean(), np.float64)
    for lags in (*(lags for lags in STAGES if lags < len(series)), len(series)):
        sums = _sums_of_pairs(_normalized(_products(centered, lags)))
        if np.any(sums <= 0):
            break
    stop = int(np.argmax(sums <= 0)) if np.any(sums <= 0) else len(sums)
    monotone = np.minimum.accumulate(sums[:stop])
    return max(1.0, float(2 * monotone.sum() - 1))


def _products(centered: npt.NDArray[np.float64], lags: int) -> npt.NDArray[np.float64]:
    """Sums of x[i] x[i + lag] for the lags 0, 1, ... below `lags`.

    Nothing wraps around. A long series is taken in frames, each against itself and the `lags` values behind
    it: a transform of all of it at once takes ten times as long, most of it waiting for memory.
    """
    n = len(centered)
    if lags <= STAGES[0]:
        return np.array([centered[: n - lag] @ centered[lag:] for lag in range(lags)])
    if lags > _FRAME // 2 or n <= _FRAME:
        # Other lengths than powers of two take up to seven times as long.
        padded = 1 << (2 * n - 1).bit_length()
        spectrum = np.fft.rfft(centered, padded)
        return np.asarray(np.fft.irfft(spectrum * np.conj(spectrum), padded)[:lags], np.float64)
    own = _FRAME - lags
    total = np.zeros(_FRAME // 2 + 1, np.complex128)
    for start in range(0, n, own):
        frame = np.fft.rfft(centered[start : start + own], _FRAME)
        total += np.conj(frame) * np.fft.rfft(centered[start : start + _FRAME], _FRAME)
    return np.asarray(np.fft.irfft(total, _FRAME)[:lags], np.float64)


def _normalized(products: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if products[0] <= 0:
        return np.concatenate([[1.0], np.zeros(len(products) - 1)])
    return np.asarray(products / products[0], np.float64)


def _sums_of_pairs(correlation: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(correlation[: len(correlation) // 2 * 2].reshape(-1, 2).sum(axis=1), np.float64)


def effective_size(data: npt.NDArray[np.float64], quantile: float) -> float:
    """Independent samples that n steps are worth for the quantile with this value; from 1 to n."""
    return max(1.0, len(data) / autocorrelation_time((data < quantile).astype(np.float64)))
