"""How many rounds a pair of launches takes.

A pair scatters because its rounds do and because launches differ: its variance is vl + vr / n after n rounds,
and it costs as much as a start and n rounds. So with a given time for all pairs, what they say together is
known best where

    n = sqrt((start / round) * (vr / vl))

(Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, section 6.1). Times and variances
are measured: those of rounds in the first rounds of the pair itself and in the pairs before it, those of
launches in the pairs before it, with a typical value that counts as a few pairs. How large the ratio is does
not enter, so the choice cannot favor a verdict. A pair takes fewer than that (FEW_PAIRS): near the optimum,
time and variance trade evenly, and the interval over few pairs gains from each further one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from timetrial.analysis.outlook import launch_scatter, scatter_of_rounds
from timetrial.heats.heat import Ridden
from timetrial.records.race import PairRecord

FEWEST = 8  # rounds, unless they take longer than FEWEST_S
FEWEST_S = 10.0
FEWEST_LONG = 2  # of rounds of many seconds: one in either order
FEW_PAIRS = 0.6  # of the optimum: costs at most 7 % of what a given time tells, and buys a third more pairs
TYPICAL_ROUND = 0.10  # standard deviation of ln(ratio) of one round on a shared machine
TYPICAL_COUNTS = 8  # as so many rounds
MOST = 1_000
MOST_S = 60.0


def fewest_rounds(round_s: float, sides: int) -> int:
    """Of a pair of so many sides, whatever scatters."""
    fewest = FEWEST if FEWEST * round_s <= FEWEST_S else max(FEWEST_LONG, int(FEWEST_S / round_s))
    return _in_blocks(fewest, sides)


def wanted_rounds(ridden: Ridden, before: Sequence[PairRecord], sides: Sequence[str]) -> int:
    """Of a pair that has `ridden` some rounds; as many as these: it has enough. `before`: the pairs of its
    race that have ended. `sides`: cases, the base first."""
    done = len(ridden.step_ns)
    round_s = ridden.rounds_s / done
    fewest = fewest_rounds(round_s, len(sides))
    if done < fewest:
        return fewest  # asked again behind these, whose scatter is known then
    shares = []
    for place, case in enumerate(sides[1:], 1):
        own = [math.log(one[place] / one[0]) for one in ridden.step_ns]
        seen = [one for one in before if one.void is None and case in one.scatter]
        rounds = [(len(own), scatter_of_rounds(own)), *((len(one.rounds), one.scatter[case]) for one in seen)]
        known = [(count, scatter) for count, scatter in rounds if scatter is not None]
        # The mean of standard deviations: that of variances would follow the one pair that met a burst.
        total = TYPICAL_COUNTS * TYPICAL_ROUND + sum(n * scatter for n, scatter in known)
        of_round = total / (TYPICAL_COUNTS + sum(n for n, _ in known))
        shares.append(of_round / launch_scatter(seen, case))
    best = FEW_PAIRS * math.sqrt(ridden.start_s / round_s) * max(shares)
    most = max(fewest, min(MOST, int(MOST_S / round_s)))
    return max(done, _in_blocks(min(int(best), most), len(sides)))


def _in_blocks(rounds: int, sides: int) -> int:
    """Each block has every side at every place once."""
    return math.ceil(rounds / sides) * sides
