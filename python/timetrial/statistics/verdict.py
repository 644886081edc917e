"""The verdict of a race: better, worse, same or inconclusive, from one number per pair of launches.

That number is ln(challenger / base) of the metric. After 6, 10, 16 and 24 pairs (planned looks, no others)
the 20 % trimmed mean gets Yuen's interval. Each direction may err with 0.01 in all (Bonferroni): 0.002 at
each look but the last, where what is left, 0.004, finds what the scatter of a bad machine hides so long. So
the interval is one of 99.6 %, at the last look of 99.2 %. Then, in this order:

    worse, better   the interval excludes 0 and the effect is at least `min_effect` (3 %)
    same            the whole interval lies within +-`equivalence` (5 %)
    (go on)         at the last look: inconclusive

The size of the effect is asked for besides the interval, because with enough pairs every change of layout
is "significant"; the interval besides the size, because a threshold alone is right half of the time. Where
these numbers come from, and the error rates that were measured: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import special

from timetrial.statistics.trimmed import Trimmed, trimmed_mean

Verdict = Literal["better", "worse", "same", "inconclusive"]
DIFFERENT: tuple[Verdict, ...] = ("worse", "better")
Direction = Literal["lower", "higher"]  # which values of a metric are good

EARLY = 0.8  # of an equal share of the error: what each look but the last may spend


@dataclass(frozen=True)
class Rule:
    """When a race ends and what it may say. Effects are fractions."""

    min_effect: float = 0.03  # smallest difference that is worth a verdict, a fraction
    equivalence: float = 0.05  # what lies within ± this is the same, a fraction
    looks: tuple[int, ...] = (6, 10, 16, 24)  # pairs after which a verdict may come
    confidence: float = 0.995  # of the intervals, two-sided, on average over looks

    @property
    def most_pairs(self) -> int:
        """The last look."""
        return self.looks[-1]

    def confidence_at(self, pairs: int) -> float:
        """Of the interval, two-sided, at the look after so many pairs."""
        error = (1 - self.confidence) * len(self.looks)
        early = (1 - self.confidence) * EARLY
        return 1 - (early if pairs < self.most_pairs else error - early * (len(self.looks) - 1))


@dataclass(frozen=True)
class Effect:
    """Challenger over base minus 1, with the interval that decided."""

    estimate: float  # a fraction: 0.05 is 5 % more
    low: float  # lower end of the interval
    high: float  # upper end of the interval


@dataclass(frozen=True)
class Decision:
    """A verdict and what it stands on."""

    verdict: Verdict
    effect: Effect
    pairs: int
    p_value: float  # two-sided, that there is no effect; for the correction over a suite of tests
    minimal_detectable_effect: float  # a fraction: what these pairs find in 9 of 10 races


def decide(
    log_ratios: Sequence[float], rule: Rule, good: Direction, *, last: bool = False
) -> Decision | None:
    """The verdict after these pairs, ln(challenger / base) each; None: go on.

    `last`: there will be no further pair (the last look, or the time is spent). Call it at looks only.
    """
    seen = trimmed_mean(log_ratios)
    confidence = rule.confidence_at(seen.n)
    low, high = seen.interval(confidence)
    smallest = math.log1p(rule.min_effect)
    verdict: Verdict = "inconclusive"
    if (low > 0 or high < 0) and abs(seen.location) >= smallest:
        verdict = "worse" if (seen.location > 0) == (good == "lower") else "better"
    elif max(-low, high) < math.log1p(rule.equivalence):
        verdict = "same"
    elif not last:
        return None
    return Decision(
        verdict,
        Effect(math.expm1(seen.location), math.expm1(low), math.expm1(high)),
        len(log_ratios),
        seen.p_value(),
        minimal_detectable_effect(seen, confidence),
    )


def minimal_detectable_effect(seen: Trimmed, confidence: float, power: float = 0.9) -> float:
    """The true effect whose interval excludes 0 with this probability, at the scatter that was seen."""
    reach = float(special.stdtrit(seen.df, (1 + confidence) / 2) + special.stdtrit(seen.df, power))
    return math.expm1(reach * seen.error)
