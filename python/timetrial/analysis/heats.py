"""From the turns of a heat to one step time per launch. Pure functions of arrays.

On a shared machine the speed switches between levels, for 0.2 to 6 s at a stretch, and each contender slows
down by a factor of its own there. Turns are shorter than that, so a round finds all contenders on about the
same level. What is estimated is the step time of quiet moments:

1. Rounds are ranked by how slow they were for all contenders together, each measured against its own median;
   the quieter half is kept. Nobody's time decides about itself alone.
2. On these, ln(time) = contender + round, fitted by medians (median polish: Tukey, "Exploratory Data
   Analysis", 1977), so a stalled turn moves nothing.

The levels of a heat differ by the logarithms of the ratios, the same for every pair. How it was chosen among
others: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from timetrial.analysis.pairs import turns_of
from timetrial.analysis.steps import Steps, calm_turns
from timetrial.records.model import LaunchRecord

FloatArray = npt.NDArray[np.float64]
QUIET_SHARE = 0.5  # of the rounds
FEWEST_QUIET = 3  # rides in quiet rounds, that a level is taken from; below, all rounds count
SWEEPS = 40  # of the median polish, at most; with two launches, each halves what is left
SETTLED = 1e-6  # as a fraction


@dataclass(frozen=True)
class TurnTimes:
    """Of one launch: the median step of each turn that counts, and the round that it was ridden in."""

    rounds: npt.NDArray[np.int64]
    step_ns: FloatArray


def turn_times(record: LaunchRecord, steps: Steps) -> TurnTimes | None:
    """Of the turns that count. None: the launch took none."""
    # A launch that failed in a turn has its steps, and nothing that was seen of it.
    finished = turns_of(steps)[: len(record.turns)]
    if not finished:
        return None
    # Thousands of turns of a few steps: NumPy's median takes ten times as long for such.
    medians = np.array([median(times.tolist()) for times in finished])
    rounds = np.array([turn.round for turn in record.turns], np.int64)
    calm = np.array(calm_turns(record))
    return TurnTimes(rounds[calm], medians[calm])


@dataclass(frozen=True, eq=False)
class Level:
    """The step time of a launch in the quiet rounds of its heat; ln(time) of its turn in each round, NaN
    where it did not ride; which rounds its level is taken from; and ln(how slow others of the heat were)."""

    step_ns: float
    turns: FloatArray
    counted: npt.NDArray[np.bool_]
    others: FloatArray

    def error_against(self, other: Level) -> float:
        """Standard error of ln(ratio) of two launches of one heat, by how their rounds scatter: 1.25 times
        that of a mean, from the median absolute deviation. NaN for fewer than two rounds together."""
        ratios = (self.turns - other.turns)[self.counted | other.counted]
        ratios = ratios[np.isfinite(ratios)]
        if len(ratios) < 2:
            return float("nan")
        spread = 1.4826 * float(np.median(np.abs(ratios - np.median(ratios))))
        return 1.2533 * spread / float(np.sqrt(len(ratios)))


def levels_of(launches: Sequence[TurnTimes]) -> list[Level]:
    """Of each launch of one heat."""
    times = np.log(by_round(launches))
    quiet = np.zeros(len(times), np.bool_)
    quiet[quiet_rounds(times)] = True
    seldom = np.count_nonzero(np.isfinite(times[quiet]), axis=0) < FEWEST_QUIET
    if seldom.all():
        found = polished(times)
    else:
        found = polished(times[quiet])
        # Who rides seldom: in all of its rounds, against how slow these were for the others.
        often = times[:, ~seldom]
        ridden = np.isfinite(often).any(axis=1)
        rounds = np.full(len(times), np.nan)
        rounds[ridden] = np.nanmedian(often[ridden] - found[~seldom], axis=1)
        for place in np.flatnonzero(seldom):
            left = times[:, place] - rounds
            alone = not np.isfinite(left).any()  # nobody else rode in its rounds
            found[place] = np.nanmedian(times[:, place] if alone else left)
    slower = times - np.nanmedian(times, axis=0)
    rode, sums = np.isfinite(slower), np.nansum(slower, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nobody else rode
        others = (sums - np.nan_to_num(slower)) / (rode.sum(axis=1, keepdims=True) - rode)
    return [
        Level(float(np.exp(level)), own, np.ones_like(quiet) if few else quiet, rest)
        for level, own, few, rest in zip(found, times.T, seldom, others.T, strict=True)
    ]


def quiet_rounds(times: FloatArray) -> npt.NDArray[np.int64]:
    """Which rounds of (rounds, launches) logarithms are in the quieter half; NaN: somebody did not ride."""
    slower = times - np.nanmedian(times, axis=0)
    known = np.isfinite(slower).any(axis=1)
    mean = np.full(len(times), np.inf)
    mean[known] = np.nanmean(slower[known], axis=1)
    kept = int(np.ceil(QUIET_SHARE * np.count_nonzero(known)))
    return np.sort(np.argsort(mean, kind="stable")[:kept])


def polished(times: FloatArray) -> FloatArray:
    """The level of each column of (rounds, launches) logarithms, by median polish; rounds add up to nothing.
    NaN for a column without a number."""
    known = times[np.isfinite(times).any(axis=1)]
    present = np.isfinite(known).any(axis=0)
    levels = np.full(times.shape[1], np.nan)
    own = known[:, present]
    found = np.nanmedian(own, axis=0)
    for _ in range(SWEEPS):
        rounds = np.nanmedian(own - found, axis=1, keepdims=True)
        rounds -= np.median(rounds)
        before, found = found, np.nanmedian(own - rounds, axis=0)
        if np.abs(found - before).max() < SETTLED:
            break
    levels[present] = found
    return levels


def by_round(launches: Sequence[TurnTimes]) -> FloatArray:
    """Step times, (rounds, launches); NaN where a launch has no turn in a round."""
    rounds = 1 + max(int(one.rounds.max()) for one in launches)
    table = np.full((rounds, len(launches)), np.nan)
    for place, one in enumerate(launches):
        table[one.rounds, place] = one.step_ns  # of a repeated turn, the last
    return table
