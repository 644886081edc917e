"""Where warm-up ends, and whether what follows is steady.

Steps are put into blocks, of each its median. MSER cuts the blocks in front where the rest has the smallest
standard error (White, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69, 1997). What is left is accepted if the cut is short, it has no slope (Theil-Sen), its halves
agree, and no stall comes back every so many steps; otherwise the launch goes on, and if it cannot, says what
it saw. The labels follow Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from timetrial.statistics.correlation import autocorrelation_time

Label = Literal["flat", "warm-up", "slowdown", "drifting", "no steady state"]
ACCEPTED: tuple[Label, ...] = ("flat", "warm-up", "slowdown")

BLOCK_STEPS = 5
BLOCK_NS = 20_000_000
FEWEST_BLOCKS = 6
MOST_BLOCKS = 320  # so that Theil-Sen, which looks at all pairs of blocks, costs milliseconds
LONGEST_CUT = 1 / 3  # of all blocks
HALVES_AGREE = 0.005  # or two standard errors, if that is more
FLAT_SLOPE = 0.01  # over the whole of what is left
SURE = 3  # standard errors, to say that a change is there; less is noise that may be one
NEIGHBORS = 5  # blocks on either side of a change
LEVEL = 3  # times the difference of neighbors: what scatters more about a level is none
JUMP = 2 / 3  # of the change that these neighbors must show already
STALLS_ADD = 0.005  # to the mean step: less of a periodic stall is let pass
STALL = 1.1  # times the median, and beyond the scatter: a step that stalled
FEWEST_STALLS = 8
PERIODIC = 0.4  # of the distances between stalls that are the same; chance stalls come in between


@dataclass(frozen=True)
class Steady:
    """The steps from `first` on are steady, if the label is one of ACCEPTED."""

    label: Label | None  # None: too few steps, or too noisy, to tell
    first: int  # number of the first step that counts
    blocks: int
    reason: str = ""  # in words, where it is not accepted
    change: int | None = None  # number of the step at which the level changed, where it did so at once

    @property
    def accepted(self) -> bool:
        """Whether there is a steady state."""
        return self.label in ACCEPTED


def block_medians(durations_ns: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], int]:
    """Medians of blocks of equal length, and that length in steps; steps that fill no block are left out."""
    data = np.asarray(durations_ns, np.float64)
    if len(data) == 0:
        return np.empty(0), BLOCK_STEPS
    filled = math.ceil(BLOCK_NS / max(float(np.median(data)), 1.0))
    length = max(BLOCK_STEPS, filled, math.ceil(len(data) / MOST_BLOCKS))
    whole = len(data) // length
    return np.median(data[: whole * length].reshape(whole, length), axis=1), length


def mser(blocks: npt.NDArray[np.float64]) -> int:
    """How many blocks to cut in front, at most half: least squared standard error of the rest."""
    n = len(blocks)
    left = np.arange(n, 0, -1)[: n // 2 + 1]
    errors = _scatter_from(blocks)[: n // 2 + 1] / left**2
    return int(np.argmin(errors))


def find_steady(durations_ns: npt.ArrayLike) -> Steady:
    """Of all steps after the first one of a launch, in order. ValueError for values that are not finite."""
    data = np.asarray(durations_ns, np.float64)
    if not np.all(np.isfinite(data)):
        raise ValueError(f"expected finite durations, got {np.sum(~np.isfinite(data))} that are not")
    blocks, length = block_medians(data)
    n = len(blocks)
    if n < FEWEST_BLOCKS:
        return Steady(None, 0, n, f"{n} blocks of {length} steps: at least {FEWEST_BLOCKS} are needed")
    cut = mser(blocks)
    typical = float(np.median(blocks[cut:]))
    noise = block_noise(blocks[cut:]) / typical
    ahead = float(np.mean(blocks[:cut])) / typical - 1 if cut else 0.0
    if abs(ahead) <= max(HALVES_AGREE, SURE * noise * math.sqrt(1 / max(cut, 1) + 1 / (n - cut))):
        if cut > LONGEST_CUT * n:
            return Steady(None, 0, n, "too noisy to tell: its beginning is no different, but no steadier")
        cut, ahead, noise = 0, 0.0, block_noise(blocks) / typical
    first, rest = cut * length, blocks[cut:]
    if cut > LONGEST_CUT * n:
        is_line = float(np.std(_off_line(blocks))) <= LEVEL * float(np.median(np.abs(np.diff(blocks))))
        label: Label = "drifting" if is_line else "no steady state"
        return _rejected(label, blocks, length, 0, first, "still changing after a third of the launch")
    drift = abs(theil_sen(rest)) * len(rest) / typical
    error = noise * math.sqrt(12 / len(rest))
    if drift > FLAT_SLOPE:
        seen = _rejected("drifting", rest, length, cut, first, f"a drift of {100 * drift:.1f} %")
        return seen if drift > SURE * error else _unsure(seen, error)
    halves = [float(np.median(half)) for half in np.array_split(rest, 2)]
    apart = abs(halves[1] - halves[0]) / typical
    error = noise * math.sqrt(4 / len(rest))
    if apart > max(HALVES_AGREE, 2 * error):
        differ = f"halves that differ by {100 * apart:.1f} %"
        seen = _rejected("no steady state", rest, length, cut, first, differ)
        return seen if apart > SURE * error else _unsure(seen, error)
    stall = periodic_stall(data[first:])
    if stall is not None:
        return Steady("no steady state", first, n, f"every {stall}th step stalls, which its median hides")
    return Steady(_label(ahead), first, n)


def _unsure(seen: Steady, error: float) -> Steady:
    words = f"too noisy to tell: {seen.reason}, with a standard error of {100 * error:.1f} %"
    return Steady(None, seen.first, seen.blocks, words)


def _label(ahead: float) -> Label:
    if ahead == 0:
        return "flat"
    return "warm-up" if ahead > 0 else "slowdown"


def theil_sen(series: npt.NDArray[np.float64]) -> float:
    """The median slope of all pairs of places (Sen, "Estimates of the regression coefficient based on
    Kendall's tau", JASA 63, 1968). At least two values."""
    left, right = np.triu_indices(len(series), 1)
    return float(np.median((series[right] - series[left]) / (right - left)))


def block_noise(blocks: npt.NDArray[np.float64]) -> float:
    """Standard deviation of blocks about what they do, a line or two levels, whichever fits better; times
    the root of their autocorrelation time, so that the error of a mean is this / sqrt(n)."""
    residuals = min(_off_line(blocks), _off_levels(blocks)[0], key=lambda left: float(np.sum(left**2)))
    return float(np.std(residuals)) * math.sqrt(autocorrelation_time(residuals))


def level_change(blocks: npt.NDArray[np.float64]) -> tuple[int | None, float]:
    """The first block of a new level and its size as a fraction, if the series steps from one level to
    another. The place is that of least squares; a drift or a decay, which two levels would also fit
    somehow, has no jump at it."""
    left, at = _off_levels(blocks)
    if at is None or np.sum(left**2) > np.sum(_off_line(blocks) ** 2):
        return None, 0.0
    if float(np.std(left)) > LEVEL * float(np.median(np.abs(np.diff(blocks)))):
        return None, 0.0  # the levels move more than neighbors differ: a decay
    before, after = float(np.median(blocks[:at])), float(np.median(blocks[at:]))
    jump = float(np.median(blocks[at : at + NEIGHBORS]) - np.median(blocks[at - NEIGHBORS : at]))
    error = float(np.std(left)) * math.sqrt(math.pi / NEIGHBORS)  # of a difference of two such medians
    if abs(jump) < max(JUMP * abs(after - before), 3 * error):
        return None, 0.0
    return at, after / before - 1


def periodic_stall(durations: npt.NDArray[np.float64]) -> int | None:
    """The period, in steps, of long steps that come back at equal distances and add to the mean; or None."""
    typical = float(np.median(durations))
    scatter = 1.4826 * float(np.median(np.abs(durations - typical)))
    long = durations > max(STALL * typical, typical + 3 * scatter)
    distances = np.diff(np.flatnonzero(long))
    if len(distances) < FEWEST_STALLS or np.sum(durations[long] - typical) < STALLS_ADD * np.sum(durations):
        return None
    period, times = Counter(distances.tolist()).most_common(1)[0]
    return int(period) if period > 1 and times >= PERIODIC * len(distances) else None


def across_launches(labels: Sequence[Label | None]) -> Label | Literal["inconsistent"] | None:
    """What the launches of one case say together. `flat` beside `warm-up` is no contradiction: a short
    warm-up is not always seen. None: no launch could tell."""
    known = [label for label in labels if label is not None]
    if not known:
        return None
    common = Counter(known).most_common(1)[0][0]
    return common if len(set(known)) == 1 or set(known) == {"flat", "warm-up"} else "inconsistent"


def _rejected(
    label: Label, blocks: npt.NDArray[np.float64], length: int, cut: int, first: int, reason: str
) -> Steady:
    """With the place of a change, where the level of these blocks changed at once. `cut`: blocks before."""
    at, size = level_change(blocks)
    if at is None:
        return Steady(label, first, cut + len(blocks), reason)
    step = (cut + at) * length
    words = f"its level changed by {100 * size:+.1f} % at step {step}"
    return Steady("no steady state", first, cut + len(blocks), words, step)


def _off_line(blocks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    places = np.arange(len(blocks)) - (len(blocks) - 1) / 2
    centered = blocks - np.mean(blocks)
    return np.asarray(centered - places * (places @ centered) / (places @ places), np.float64)


def _off_levels(blocks: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], int | None]:
    """Distances from the two levels that fit best, and the first block of the second; of one level, and
    None, where there are too few blocks on a side."""
    sums = _scatter_from(blocks[::-1])[::-1][:-1] + _scatter_from(blocks)[1:]
    inner = sums[NEIGHBORS - 1 : 1 - NEIGHBORS]
    if len(inner) == 0:
        return blocks - np.mean(blocks), None
    at = int(np.argmin(inner)) + NEIGHBORS
    return np.concatenate([blocks[:at] - np.mean(blocks[:at]), blocks[at:] - np.mean(blocks[at:])]), at


def _scatter_from(blocks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum of squares about their mean of the blocks from each one to the end."""
    centered = (blocks - np.median(blocks))[::-1]  # or the squares would cancel
    counts = np.arange(1, len(blocks) + 1)
    scatter = np.cumsum(centered**2) - np.cumsum(centered) ** 2 / counts
    return np.asarray(np.maximum(scatter, 0.0)[::-1], np.float64)
