"""Which rows of a table can be told apart, all of them against each other. Pure functions.

Each pair of rows has one ratio per heat that both rode in. A pair is told apart where its ratio differs from
1 by Student's t, with degrees of freedom lent by the other pairs (scatter.py), after Holm's step-down rule
("A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979): of
all pairs of a table together, one is called different by chance in at most 5 % of tables, and any one of
them in at most 1 %. What is left are groups of rows that cannot be told apart, written as letters (Piepho,
"An algorithm for a letter-based representation of all-pairwise comparisons", Journal of Computational and
Graphical Statistics 13, 2004).
"""

from __future__ import annotations

import math
import string
from collections.abc import Hashable, Mapping, Sequence

from scipy import special

from timetrial.statistics.scatter import FEWEST_TO_BORROW, moderated, scatter_of

FAMILY_ERROR = 0.05
# Of a pair by itself: where all others differ, Holm's rule would leave it 5 %. Half of what is promised,
# because Student's t with lent degrees is a little too sure of itself that far out, at four heats.
PAIR_ERROR = 0.005
Pair = tuple[int, int]


def told_apart(
    log_ratios: Mapping[Pair, Sequence[float]], kinds: Mapping[Pair, Hashable] | None = None
) -> set[Pair]:
    """Those whose ratios lie off 1. A pair with fewer than FEWEST_TO_BORROW of them is never told apart.
    Pairs of the same kind lend one another degrees of freedom; None: all are of one."""
    kinds = kinds or dict.fromkeys(log_ratios)
    scatters = {pair: scatter_of(own) for pair, own in log_ratios.items() if len(own) >= FEWEST_TO_BORROW}
    p_values: dict[Pair, float] = {}
    for pair, own in scatters.items():
        alike = (one for one in scatters if one != pair and kinds[one] == kinds[pair])
        lenders = [scatters[one] for one in alike]
        variance, df, _ = moderated(own, lenders)
        error = math.sqrt(variance / own.n)
        t = abs(own.location) / error if error > 0 else math.inf
        p_values[pair] = 2 * float(special.stdtr(df, -t)) if own.location else 1.0
    found: set[Pair] = set()
    for rank, pair in enumerate(sorted(p_values, key=lambda one: p_values[one])):
        if p_values[pair] > min(PAIR_ERROR, FAMILY_ERROR / (len(log_ratios) - rank)):
            break
        found.add(pair)
    return found


def letters(rows: int, apart: set[Pair]) -> list[str]:
    """For each of so many rows, in the order in which letters are given: two rows share one where they cannot
    be told apart."""
    groups: list[frozenset[int]] = [frozenset(range(rows))]
    for first, second in sorted(apart):
        split = []
        for group in groups:
            if first in group and second in group:
                split += [group - {first}, group - {second}]
            else:
                split.append(group)
        groups = [one for one in dict.fromkeys(split) if not any(one < other for other in split)]
    groups = sorted((group for group in groups if group), key=sorted)
    return [
        "".join(_letter(number) for number, group in enumerate(groups) if row in group) for row in range(rows)
    ]


def _letter(number: int) -> str:
    """a, b, ... z, A, B, ... ; more groups than letters end in a number."""
    known = string.ascii_letters
    return known[number] if number < len(known) else f"({number})"
