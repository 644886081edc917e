"""From the turns of a heat to one step time per launch. Pure functions of arrays.

On a shared machine the speed switches between levels, for 0.2 to 6 s at a stretch, and each contender slows
down by a factor of its own there. Turns are shorter than that, so a round finds all contenders on about the
same level. What is estimated is the time per step of quiet moments, all steps counted:

1. For each contender, rounds are ranked by how slow they were for the others, each measured against its own
   median; the quieter half is kept. A contender's own time decides about none of its rounds, so what it does
   now and then (a collection of garbage, a burst of its loader) is neither left out nor favored.
2. Its step time is the mean over these rounds of its turn's time per step. Of who rides seldom, it is that
   over all of its rounds, times what they were like for those who ride often.

How it was chosen among others: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from timetrial.analysis.pairs import per_step, turns_of
from timetrial.analysis.steps import Steps, calm_turns
from timetrial.records.model import LaunchRecord
from timetrial.statistics.quiet import counted_rounds, slowness_of_others
from timetrial.statistics.totals import scatter_of_totals

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
OFTEN = 0.5  # of the rounds; who rides in fewer is measured against what these were like for the others


@dataclass(frozen=True)
class TurnTimes:
    """Of one launch, of each turn that counts: the round that it was ridden in, the time per step [ns] over
    the whole turn, and its median step [ns]."""

    rounds: npt.NDArray[np.int64]
    step_ns: FloatArray
    median_ns: FloatArray


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
    return TurnTimes(rounds[calm], np.array(per_step(finished))[calm], medians[calm])


@dataclass(frozen=True, eq=False)
class Level:
    """The step time of a launch in the rounds of its heat that were quiet for the others, and its median step
    there; its time per step in each round, NaN where it did not ride; which rounds its step time is taken
    from; and ln(how slow others of the heat were)."""

    step_ns: float
    median_ns: float
    turns: FloatArray
    counted: BoolArray
    others: FloatArray

    def error_against(self, other: Level) -> float:
        """Standard error of ln(ratio) of two launches of one heat, by how their rounds scatter. NaN for fewer
        rounds together than a scatter is taken from."""
        both = (self.counted | other.counted) & np.isfinite(self.turns) & np.isfinite(other.turns)
        scatter = scatter_of_totals(other.turns[both], self.turns[both])
        if scatter is None:
            return float("nan")
        counted = min(int(np.count_nonzero(one.counted & both)) for one in (self, other))
        return scatter / math.sqrt(max(counted, 1))


def levels_of(launches: Sequence[TurnTimes]) -> list[Level]:
    """Of each launch of one heat."""
    times = by_round(launches, [one.step_ns for one in launches])
    medians = by_round(launches, [one.median_ns for one in launches])
    rode = np.isfinite(times)
    often = rode.sum(axis=0) >= OFTEN * np.count_nonzero(rode.any(axis=1))
    others = slowness_of_others(np.where(often, medians, np.nan))
    counted = rode.copy()
    for place in np.flatnonzero(often):
        counted[:, place] = counted_rounds(rode[:, place], others[:, place])
    factors = np.ones(len(launches))
    for place in np.flatnonzero(~often):
        factors[place] = _whole_over(times[:, often], counted[:, often], rode[:, place])
    return [
        Level(
            step_ns=float(factor * np.mean(own[count])),
            median_ns=float(factor * np.median(typical[count])),
            turns=own,
            counted=count,
            others=beside,
        )
        for own, typical, count, beside, factor in zip(
            times.T, medians.T, counted.T, others.T, factors, strict=True
        )
    ]


def _whole_over(times: FloatArray, counted: BoolArray, rounds: BoolArray) -> float:
    """What others took in the rounds that count, over what they took in these rounds; 1: nobody was there."""
    found = [
        np.mean(own[count]) / np.mean(own[both])
        for own, count in zip(times.T, counted.T, strict=True)
        if (both := rounds & np.isfinite(own)).any()
    ]
    return float(np.exp(np.mean(np.log(found)))) if found else 1.0


def by_round(launches: Sequence[TurnTimes], times: Sequence[FloatArray]) -> FloatArray:
    """Times of turns of each launch, as (rounds, launches); NaN where a launch has no turn in a round."""
    rounds = 1 + max(int(one.rounds.max()) for one in launches)
    table = np.full((rounds, len(launches)), np.nan)
    for place, (one, own) in enumerate(zip(launches, times, strict=True)):
        table[one.rounds, place] = own  # of a repeated turn, the last
    return table
