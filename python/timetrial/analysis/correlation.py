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


def autocorrelation(series: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """At lags 0, 1, ... n - 1, by FFT; all 0 behind lag 0 for a constant series."""
    n = len(series)
    centered = series - series.mean()
    # Nothing wraps around; other lengths than powers of two take up to seven times as long.
    padded = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centered, padded)
    products = np.fft.irfft(spectrum * np.conj(spectrum), padded)[:n]
    if products[0] <= 0:
        return np.concatenate([[1.0], np.zeros(n - 1)])
    return np.asarray(products / products[0], np.float64)


def autocorrelation_time(series: npt.NDArray[np.float64]) -> float:
    """At least 1: one independent sample in so many."""
    if len(series) < 4:
        return 1.0
    correlation = autocorrelation(series)
    even = len(correlation) // 2 * 2
    sums = correlation[:even].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(sums <= 0)) if np.any(sums <= 0) else len(sums)
    monotone = np.minimum.accumulate(sums[:stop])
    return max(1.0, float(2 * monotone.sum() - 1))


def effective_size(values: npt.ArrayLike, p: float = 0.5) -> float:
    """Independent samples that n steps are worth for their p-quantile; from 1 to n."""
    data = np.asarray(values, np.float64)
    if len(data) == 0:
        return 0.0
    below = (data < np.quantile(data, p)).astype(np.float64)
    return max(1.0, len(data) / autocorrelation_time(below))
