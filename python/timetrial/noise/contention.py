"""Caches and memory, read evenly for a while: a neighbor that uses what is shared makes single reads slow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from timetrial.core.cpu import LEAST_ARRAYS, Reads, cache_bytes, read_evenly

# Copies of large caches would take longer to make than to measure.
MOST_OF_CACHE, MOST_OF_MEMORY = 32 * 2**20, 128 * 2**20
MEMORY = "memory"
FAST = 0.1  # the quantile that stands for the fast level
SLOW = 1.2  # times the fast level: from there on reads are slow
WIDE = (0.05, 0.95)  # quantiles between which the spread lies


@dataclass(frozen=True)
class Level:
    """What the windows over one array tell."""

    place: str  # second-level cache, last cache, MEMORY
    bytes: int
    is_chase: bool  # one read at a time, each waiting for the one before; otherwise one behind the other
    fast_ns: float  # of a line, at the fast level
    spread: float  # between two quantiles, as a share of the fast level
    slow_share: float  # of the windows


def array_sizes(caches: Mapping[int, int]) -> dict[str, int]:
    """Bytes to read for each place that is told apart. `caches`: sizes by level, as the kernel has them."""
    second, last = caches.get(2), max(caches.values(), default=0)
    sizes = {"second-level cache": second // 2} if second else {}
    if last and last != second:
        sizes["last cache"] = min(last // 2, MOST_OF_CACHE)
    if 2 * last <= MOST_OF_MEMORY:
        sizes[MEMORY] = max(2 * last, LEAST_ARRAYS)
    return sizes


def level_of(place: str, size: int, is_chase: bool, ns_per_line: Iterable[float]) -> Level:
    """From what was measured over one array."""
    times = np.asarray(list(ns_per_line))
    fast = float(np.quantile(times, FAST))
    low, high = np.quantile(times, WIDE)
    return Level(place, size, is_chase, fast, float((high - low) / fast), float(np.mean(times > SLOW * fast)))


def read_levels(seconds: float) -> list[Level]:
    """Measures, in this thread."""
    sizes = array_sizes(cache_bytes())
    found: list[Reads] = read_evenly(list(sizes.values()), seconds)
    places = [place for place in sizes for _ in range(2)]
    return [
        level_of(place, reads.bytes, reads.is_chase, reads.ns_per_line)
        for place, reads in zip(places, found, strict=True)
    ]
