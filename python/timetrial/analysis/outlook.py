"""What the pairs of a race say before a verdict: the ratio so far, how they scatter, what would decide it.

No verdict stands on any of this. The scatter of few pairs is mostly a typical one, which counts as some
pairs more; with each pair the measured one gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy import special

from timetrial.analysis.pairs import GATE
from timetrial.heats.rounds import TYPICAL_LAUNCHES, launch_scatter
from timetrial.records.race import Gate, PairRecord
from timetrial.statistics.trimmed import FEWEST, trimmed_mean
from timetrial.statistics.verdict import Rule

MOST_PAIRS = 400  # what takes more than these is not offered


@dataclass(frozen=True)
class Outlook:
    """Effects are challenger over base minus 1."""

    estimate: float  # a fraction: 0.05 is 5 % more
    low: float  # of the interval that a verdict would stand on
    high: float  # its upper end
    pairs: int  # that this stands on
    needed: int | None  # pairs in all that would decide it if the rest were like these; None: no number would
    pair_s: float | None  # seconds that a pair takes; None: not known

    @property
    def seconds_left(self) -> float | None:
        """Of the pairs that are missing."""
        return (
            None if self.needed is None or self.pair_s is None else (self.needed - self.pairs) * self.pair_s
        )


def outlook(pairs: Sequence[PairRecord], case: str, rule: Rule, gate: Gate = GATE) -> Outlook | None:
    """Of one challenger, by those of these pairs that count and in which it rode; None: there is none.
    `gate`: of a pair's statistics, the one that verdicts stand on."""
    pairs = [one for one in pairs if case in one.log_ratios]
    values = [one.log_ratios[case][gate] for one in pairs]
    if not values:
        return None
    scatter, n = pair_scatter(pairs, case, gate), len(values)
    if n < FEWEST:
        location = fmean(values)
        half = _quantile(n - 1 + TYPICAL_LAUNCHES, rule.error_at(n)) * scatter / math.sqrt(n)
    else:
        seen = trimmed_mean(values, rule.trim)
        location = seen.location
        half = seen.interval(rule.confidence_at(n))[1] - location
    times = [one.seconds for one in pairs if one.seconds is not None]
    return Outlook(
        estimate=math.expm1(location),
        low=math.expm1(location - half),
        high=math.expm1(location + half),
        pairs=n,
        needed=pairs_that_decide(location, scatter, rule, beyond=n),
        pair_s=fmean(times) if times else None,
    )


def pairs_that_decide(location: float, scatter: float, rule: Rule, *, beyond: int = 0) -> int | None:
    """The first look beyond so many pairs at which pairs around `location` that scatter by `scatter`, both of
    ln(ratio), are decided; None: not with MOST_PAIRS either."""
    smallest, alike = math.log1p(rule.min_effect), math.log1p(rule.equivalence)
    for pairs in _looks(rule):
        if pairs > beyond:
            kept = pairs - 2 * int(rule.trim * pairs)
            half = _quantile(kept - 1, rule.error_at(pairs)) * scatter / math.sqrt(pairs)
            if abs(location) + half < alike or (abs(location) >= smallest and abs(location) > half):
                return pairs
    return None


def _looks(rule: Rule) -> Iterator[int]:
    yield from rule.looks
    pairs = int(1.5 * rule.most_pairs)
    while pairs <= MOST_PAIRS:
        yield pairs
        pairs = int(1.5 * pairs)


def pair_scatter(pairs: Sequence[PairRecord], case: str, gate: Gate = GATE) -> float:
    """The standard deviation of ln(challenger / base) between pairs: what rounds explain and what they do
    not."""
    return math.hypot(between_pairs(pairs, case, gate), math.sqrt(fmean(_within(pairs, case))))


def between_pairs(pairs: Sequence[PairRecord], case: str, gate: Gate = GATE) -> float:
    """The standard deviation of ln(challenger / base) between pairs that their rounds do not explain."""
    return launch_scatter([one.log_ratios[case][gate] for one in pairs], _within(pairs, case))


def _within(pairs: Sequence[PairRecord], case: str) -> list[float]:
    """Of each pair the variance that its rounds explain; 0 where its record does not have it."""
    return [one.scatter.get(case, 0.0) ** 2 / max(1, len(one.rounds)) for one in pairs]


def _quantile(degrees: int, error: float) -> float:
    return float(special.stdtrit(degrees, 1 - error))
