"""How many rounds a heat takes, as its own scatter says.

What launches of a contender scatter by is vl + vr / n after n rounds, and a heat costs as much as its starts
and n rounds. So with a given time for all heats, what they say together is known best where

    n = sqrt((start / round) * (vr / vl))

(Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, section 6.1). How large a ratio
is does not enter, so the choice cannot favor a contender.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from timetrial.heats.heat import Ridden
from timetrial.statistics.totals import log_ratio, scatter_of_totals

# Of the optimum: costs at most 7 % of what a given time tells, and buys a third more launches, from whose
# number the interval gains besides.
FEW_LAUNCHES = 0.6
MOST_S = 60.0  # of all rounds of a heat
TYPICAL_ROUND = 0.10  # standard deviation of ln(ratio) of one round on a shared machine
TYPICAL_LAUNCH = 0.02  # the same between launches, beyond what their rounds explain
TYPICAL_ROUNDS = 8  # TYPICAL_ROUND counts as so many rounds
# TYPICAL_LAUNCH counts as so many launches: the excess of a few is mostly a burst of noise, which more
# rounds cure.
TYPICAL_LAUNCHES = 8
LEAST_LAUNCH = 0.004  # a difference between launches that few of them cannot rule out


def optimal_rounds(start_s: float, round_s: float, of_round: float, of_launch: float) -> float:
    """By the standard deviations of one round and between launches; at most what MOST_S holds."""
    best = FEW_LAUNCHES * math.sqrt(start_s / round_s) * of_round / of_launch
    return min(best, MOST_S / round_s)


def round_scatter(known: Sequence[tuple[int, float]]) -> float:
    """Of one round, by pairs of (rounds, scatter of one of them). The mean of standard deviations: that of
    variances would follow the one launch that met a burst."""
    total = TYPICAL_ROUNDS * TYPICAL_ROUND + sum(rounds * scatter for rounds, scatter in known)
    return total / (TYPICAL_ROUNDS + sum(rounds for rounds, _ in known))


def launch_scatter(values: Sequence[float], within: Sequence[float]) -> float:
    """Between launches, by the ln(ratio) of each and the variance that its rounds explain. Of few launches
    mostly TYPICAL_LAUNCH."""
    if len(values) < 2:
        return TYPICAL_LAUNCH
    own, degrees = max(0.0, variance(values) - fmean(within)), len(values) - 1
    mean = (degrees * own + TYPICAL_LAUNCHES * TYPICAL_LAUNCH**2) / (degrees + TYPICAL_LAUNCHES)
    return max(LEAST_LAUNCH, math.sqrt(mean))


@dataclass
class HeatRounds:
    """What the heats of the same contenders, in one order, have shown so far. By contender, an entry a
    heat."""

    values: dict[int, list[float]] = field(default_factory=dict)  # ln(step / mean of all), of totals
    within: dict[int, list[float]] = field(default_factory=dict)  # variance of it that rounds explain
    rounds: dict[int, list[tuple[int, float]]] = field(default_factory=dict)  # how many, scatter of one

    def wanted(self, ridden: Ridden, block: int) -> int:
        """Of the heat that has `ridden` some blocks of so many rounds; as many as these: it has enough."""
        done = len(ridden.step_ns)
        shares = []
        for contender, (mean, own_ns) in _against_all(ridden).items():
            own = scatter_of_totals(mean, own_ns)
            if own is not None:
                known = [*self.rounds.get(contender, []), (done, own)]
                between = launch_scatter(self.values.get(contender, []), self.within.get(contender, []))
                shares.append((round_scatter(known), between))
        if not shares:
            return done
        of_round, of_launch = (fmean(values) for values in zip(*shares, strict=True))
        best = optimal_rounds(ridden.start_s, ridden.rounds_s / done, of_round, of_launch)
        return max(done, block * math.ceil(best / block))

    def note(self, ridden: Ridden) -> None:
        """A heat is over."""
        done = len(ridden.step_ns)
        for contender, (mean, own_ns) in _against_all(ridden).items():
            scatter = scatter_of_totals(mean, own_ns)
            if scatter is not None:
                self.values.setdefault(contender, []).append(log_ratio(mean, own_ns))
                self.within.setdefault(contender, []).append(scatter**2 / done)
                self.rounds.setdefault(contender, []).append((done, scatter))


def _against_all(ridden: Ridden) -> dict[int, tuple[list[float], list[float]]]:
    """Of each round, the mean of all and what a contender took, by contender, of those who rode in all
    rounds."""
    everybody = set.intersection(*(set(one) for one in ridden.step_ns)) if ridden.step_ns else set()
    if len(everybody) < 2:
        return {}
    means = [math.exp(fmean(math.log(turn[one]) for one in everybody)) for turn in ridden.step_ns]
    return {one: (means, [turn[one] for turn in ridden.step_ns]) for one in sorted(everybody)}
