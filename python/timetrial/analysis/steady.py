"""Where warm-up ends, and whether what follows is steady.

Steps are put into blocks, of each its median. MSER cuts the blocks in front where the rest has the smallest
standard error (White, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69, 1997). What is left is accepted if the cut is short, its halves agree, and it has no slope;
otherwise the launch goes on, and if it cannot, says what it saw. The labels follow Barrett et al., "Virtual
machine warmup blows hot and cold", OOPSLA 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

Label = Literal["flat", "warm-up", "slowdown", "drifting", "no steady state"]
ACCEPTED: tuple[Label, ...] = ("flat", "warm-up", "slowdown")

BLOCK_STEPS = 5
BLOCK_NS = 20_000_000
FEWEST_BLOCKS = 6
LONGEST_CUT = 1 / 3  # of all blocks
HALVES_AGREE = 0.005  # or two standard errors, if that is more
FLAT_SLOPE = 0.01  # over the whole of what is left


@dataclass(frozen=True)
class Steady:
    """The steps from `first` on are steady, if the label is one of ACCEPTED."""

    label: Label
    first: int  # number of the first step that counts
    blocks: int
    reason: str = ""  # in words, where it is not accepted

    @property
    def accepted(self) -> bool:
        """Whether there is a steady state."""
        return self.label in ACCEPTED


def block_medians(durations_ns: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], int]:
    """Medians of blocks of equal length, and that length in steps; steps that fill no block are left out."""
    data = np.asarray(durations_ns, np.float64)
    if len(data) == 0:
        return np.empty(0), BLOCK_STEPS
    length = max(BLOCK_STEPS, math.ceil(BLOCK_NS / max(float(np.median(data)), 1.0)))
    whole = len(data) // length
    return np.median(data[: whole * length].reshape(whole, length), axis=1), length


def mser(blocks: npt.NDArray[np.float64]) -> int:
    """How many blocks to cut in front, at most half: least squared standard error of the rest."""
    n = len(blocks)
    best, cut = math.inf, 0
    for d in range(n // 2 + 1):
        rest = blocks[d:]
        error = float(np.sum((rest - rest.mean()) ** 2)) / (n - d) ** 2
        if error < best:
            best, cut = error, d
    return cut


def find_steady(durations_ns: npt.ArrayLike) -> Steady:
    """Of all steps after the first one of a launch, in order."""
    blocks, length = block_medians(durations_ns)
    n = len(blocks)
    if n < FEWEST_BLOCKS:
        return Steady(
            "no steady state", 0, n, f"{n} blocks of {length} steps: at least {FEWEST_BLOCKS} are needed"
        )
    cut = mser(blocks)
    first, rest = cut * length, blocks[cut:]
    if cut > LONGEST_CUT * n:
        return Steady("no steady state", first, n, "still changing after a third of the launch")
    typical = float(np.median(rest))
    slope = abs(float(stats.theilslopes(rest).slope)) * len(rest) / typical
    if slope > FLAT_SLOPE:
        return Steady("drifting", first, n, f"a drift of {100 * slope:.1f} % over the steady steps")
    halves = np.array_split(rest, 2)
    apart = abs(float(np.median(halves[0]) - np.median(halves[1]))) / typical
    error = math.sqrt(sum(float(np.var(half, ddof=1)) / len(half) for half in halves)) / typical
    if apart > max(HALVES_AGREE, 2 * error):
        return Steady("no steady state", first, n, f"its halves differ by {100 * apart:.1f} %")
    if cut == 0:
        return Steady("flat", 0, n)
    return Steady("warm-up" if np.median(blocks[:cut]) > typical else "slowdown", first, n)
