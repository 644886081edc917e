"""Launches of the rows of an experiment as they might come out, and how often an interval holds the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timetrial.statistics.intervals import Estimate, positive_locations

Array = npt.NDArray[np.float64]
World = Callable[[np.random.Generator, int, int], Array]  # rows, launches -> ln(times), around 0
STALL = math.log(2)
SCATTER = 0.02


def alike(rng: np.random.Generator, rows: int, n: int) -> Array:
    """Every row's launches scatter by 2 %."""
    return np.asarray(SCATTER * rng.standard_normal((rows, n)), np.float64)


def one_noisy(rng: np.random.Generator, rows: int, n: int) -> Array:
    """The last row scatters five times as far as the others."""
    values = alike(rng, rows, n)
    values[-1] *= 5
    return values


def graded(rng: np.random.Generator, rows: int, n: int) -> Array:
    """From 1 % in the first row to 8 % in the last."""
    return np.asarray(rng.standard_normal((rows, n)) * np.geomspace(0.01, 0.08, rows)[:, None], np.float64)


def one_stalled_in_six(rng: np.random.Generator, rows: int, n: int) -> Array:
    """Of each row's launches one in every six, exactly, takes twice as long."""
    values = alike(rng, rows, n)
    for first in range(0, n - 5, 6):
        stalled = first + rng.integers(0, 6, rows)
        values[np.arange(rows), stalled] += STALL
    return values


WORLDS: dict[str, World] = {
    "alike": alike,
    "one row five times as noisy": one_noisy,
    "from 1 % to 8 %": graded,
    "one launch in six stalled": one_stalled_in_six,
}


@dataclass(frozen=True)
class Coverage:
    """By row: how often its interval held the truth, and how wide it was in the median (a fraction)."""

    trials: int
    held: Array
    width: Array

    @property
    def worst(self) -> float:
        """Of the rows, the least."""
        return float(np.min(self.held))

    @property
    def best(self) -> float:
        """Of the rows, the most."""
        return float(np.max(self.held))


Estimator = Callable[[Sequence[Sequence[float]]], list[Estimate | None]]


def coverage(
    world: World, rows: int, n: int, trials: int, seed: int, estimator: Estimator = positive_locations
) -> Coverage:
    """Of the intervals of `rows` rows with `n` launches each."""
    rng = np.random.default_rng(seed)
    held, widths = np.zeros(rows), np.empty((trials, rows))
    for trial in range(trials):
        for row, found in enumerate(estimator(np.exp(world(rng, rows, n)).tolist())):
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            held[row] += found.low <= 1.0 <= found.high
            widths[trial, row] = found.high - found.low
    return Coverage(trials, held / trials, np.median(widths, axis=0))


@dataclass(frozen=True)
class Stopped:
    """Rows whose number of launches was decided by looking at how wide their intervals are."""

    held: float  # of all rows: how often the interval holds the truth
    at_five: float  # share of rows that stopped at five launches
    held_at_five: float  # of them


def stopped(target: float, trials: int, seed: int, rows: int = 4) -> Stopped:
    """Experiments of `rows` rows alike, of which the one with the widest interval is launched again, from 5
    launches to 20, until all are narrower than +-`target`."""
    rng = np.random.default_rng(seed)
    held: list[bool] = []
    early: list[bool] = []
    for _ in range(trials):
        pool = alike(rng, rows, 20)
        numbers = [5] * rows
        while True:
            found = _located(pool, numbers)
            halves = [one.half_width or 0.0 for one in found]
            wide = [row for row in range(rows) if halves[row] > target and numbers[row] < 20]
            if not wide:
                break
            numbers[max(wide, key=halves.__getitem__)] += 1
        for number, one in zip(numbers, found, strict=True):
            held.append((one.low or 0.0) <= 1.0 <= (one.high or 0.0))
            early += held[-1:] if number == 5 else []
    return Stopped(float(np.mean(held)), len(early) / len(held), float(np.mean(early or [0.0])))


def _located(pool: Array, numbers: Sequence[int]) -> list[Estimate]:
    values = [np.exp(row[:number]).tolist() for row, number in zip(pool, numbers, strict=True)]
    return [one for one in positive_locations(values) if one is not None]
