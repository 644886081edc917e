"""How many rounds a pair of launches takes: as many as pay (heats/rounds.py), by what the pair itself and
those before it have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from timetrial.analysis.outlook import between_pairs
from timetrial.heats.heat import Ridden
from timetrial.heats.rounds import optimal_rounds, round_scatter
from timetrial.records.race import PairRecord
from timetrial.statistics.totals import scatter_of_totals

FEWEST = 8  # rounds, unless they take longer than FEWEST_S
FEWEST_S = 10.0
FEWEST_LONG = 2  # of rounds of many seconds: one in either order
MOST = 1_000


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
    best = 0.0
    for place, case in enumerate(sides[1:], 1):
        own = scatter_of_totals(*([one[side] for one in ridden.step_ns] for side in (0, place)))
        seen = [one for one in before if one.void is None and case in one.scatter]
        known = [(len(one.rounds), one.scatter[case]) for one in seen]
        of_round = round_scatter([*known, *([(done, own)] if own is not None else [])])
        best = max(best, optimal_rounds(ridden.start_s, round_s, of_round, between_pairs(seen, case)))
    return max(done, _in_blocks(min(int(best), MOST), len(sides)))


def _in_blocks(rounds: int, sides: int) -> int:
    """Each block has every side at every place once."""
    return math.ceil(rounds / sides) * sides
