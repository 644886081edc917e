"""Many tests at once: the chance that any of them errs (Holm, "A simple sequentially rejective multiple test
procedure", Scandinavian Journal of Statistics 6, 1979). It holds however the tests depend on each other."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value, corrected for their number, in the same order: whoever rejects those at most 0.01 errs
    anywhere with at most 0.01. ValueError for what is no probability."""
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"expected probabilities, from 0 to 1, got {list(p_values)!r}")
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = least
    return corrected
