"""The verdict of a race: better, worse, same or inconclusive, from one number per pair of launches.

That number is ln(challenger / base) of the metric. After 4, 6, 8, 11, 16 and 24 pairs (planned looks; the
clock may put another one in the place of one of them) the 15 % trimmed mean gets Yuen's interval. Each
direction may be wrong with a chance of 0.01 in all (Bonferroni over looks): 0.0005 at the first look, which
is there for differences that nobody can miss, 0.0015 at each of the next four, 0.0035 at the last, which
finds what the scatter of a bad machine hides so long. So the interval is one of 99.9 %, 99.7 % and 99.3 %.
Then, in this order:

    worse, better   the interval excludes 0 and the effect is at least `min_effect` (3 %)
    same            the whole interval lies within +-`equivalence` (5 %)
    (go on)         at the last look: inconclusive

The size of the effect is asked for besides the interval, because with enough pairs every change of layout
is "significant"; the interval besides the size, because a threshold alone is right half of the time. Where
these numbers come from, and the error rates that were measured: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy import special

from timetrial.statistics.trimmed import FEWEST, Trimmed, trimmed_mean

Verdict = Literal["better", "worse", "same", "inconclusive"]
DIFFERENT: tuple[Verdict, ...] = ("worse", "better")
Direction = Literal["lower", "higher"]  # which values of a metric are good

LOOKS = (4, 6, 8, 11, 16, 24)
TRIM = 0.15  # of pairs, at either end: their own values are trimmed means of rounds already
ERROR = 0.01  # the chance of a false difference in one direction, over all looks
FIRST_SHARE, LAST_SHARE = 0.05, 0.35  # of ERROR; the looks between share what is left equally
# Races of version 0.1 spent this share of an equal share at each look but the last.
OLDER_EARLY = 0.8


def shared_errors(looks: int) -> tuple[float, ...]:
    """The chance of a false difference in one direction that each of so many looks may spend."""
    if looks == 1:
        return (ERROR,)
    first, last = ERROR * FIRST_SHARE, ERROR * LAST_SHARE
    if looks == 2:
        return (first, ERROR - first)
    return (first, *[(ERROR - first - last) / (looks - 2)] * (looks - 2), last)


def older_errors(confidence: float, looks: int) -> tuple[float, ...]:
    """The same of a race of version 0.1, whose record has the mean `confidence` of its intervals."""
    early = OLDER_EARLY * (1 - confidence) / 2
    return (*[early] * (looks - 1), looks * (1 - confidence) / 2 - early * (looks - 1))


@dataclass(frozen=True)
class Rule:
    """When a race ends and what it may say. Effects are fractions."""

    min_effect: float = 0.03  # smallest difference that is worth a verdict, a fraction
    equivalence: float = 0.05  # what lies within ± this is the same, a fraction
    looks: tuple[int, ...] = LOOKS  # pairs after which a verdict may come
    errors: tuple[float, ...] = ()  # of each look: chance of a false difference in one direction; (): shared
    trim: float = TRIM  # share of pairs that is cut off at either end

    def __post_init__(self) -> None:
        if not self.errors:
            object.__setattr__(self, "errors", shared_errors(len(self.looks)))

    @property
    def most_pairs(self) -> int:
        """The last look."""
        return self.looks[-1]

    @property
    def confidence(self) -> float:
        """Of the intervals, two-sided, on average over looks."""
        return 1 - 2 * sum(self.errors) / len(self.errors)

    def error_at(self, pairs: int) -> float:
        """The chance of a false difference in one direction that a look after so many pairs may spend: that
        of the next planned look, whose place it takes."""
        following = (error for look, error in zip(self.looks, self.errors, strict=True) if look >= pairs)
        return next(following, self.errors[-1])

    def confidence_at(self, pairs: int) -> float:
        """Of the interval, two-sided, at the look after so many pairs."""
        return 1 - 2 * self.error_at(pairs)

    def looking_at(self, pairs: Collection[int]) -> Rule:
        """With looks after so many pairs because the clock said so, each in the place of the next planned
        one; those beyond the last look are none, nor those after fewer than have an interval."""
        looks = list(self.looks)
        for count in sorted(one for one in pairs if one >= FEWEST):
            following = next((place for place, look in enumerate(looks) if look >= count), None)
            if following is not None:
                looks[following] = count
        return replace(self, looks=tuple(looks))

    def up_to(self, pairs: int) -> Rule:
        """With so many pairs at most: the planned looks below, further ones each half as many pairs later,
        and the last. ValueError: fewer than an interval needs."""
        if pairs < FEWEST:
            raise ValueError(f"{pairs} pairs; expected {FEWEST} or more, as fewer have no interval")
        looks = [look for look in LOOKS if look < pairs]
        while looks and 1.5 * looks[-1] < pairs:
            looks.append(int(1.5 * looks[-1]))
        return replace(self, looks=(*looks, pairs), errors=())


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
    seen = trimmed_mean(log_ratios, rule.trim)
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
