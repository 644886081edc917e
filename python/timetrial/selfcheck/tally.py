"""Counting verdicts whose answer is known, with exact binomial bounds (Clopper and Pearson, 1934)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy import stats

from timetrial.selfcheck.checks import Check
from timetrial.statistics.verdict import Verdict

MOST_FALSE = 0.01  # of races between equals; and of races with a difference, in the wrong direction
FEWEST_FOUND = 0.90  # of +5 %
ESTIMATE_WITHIN = 0.005
FEWEST_FOR_ESTIMATE = 20  # races; the median of fewer scatters by more than that
# A machine fails when a rate that keeps the promise would give so many errors once in a thousand self-checks.
CHANCE = 0.001
BOUND = 0.95


@dataclass(frozen=True)
class Seen:
    """What one race said."""

    verdict: Verdict | None
    effect: float | None
    pairs: int
    seconds: float
    reason: str | None = None


@dataclass(frozen=True)
class Tally:
    """A check with all its races."""

    check: Check
    races: Sequence[Seen]

    @property
    def judged(self) -> list[Seen]:
        """Races that ended with a verdict, inconclusive included."""
        return [one for one in self.races if one.verdict is not None]

    @property
    def false(self) -> int:
        """Verdicts that should not have come."""
        return sum(self.check.is_false(one.verdict) for one in self.judged)

    @property
    def found(self) -> int:
        """Of a check with a difference: races that said so."""
        return sum(one.verdict == "worse" for one in self.judged)

    @property
    def inconclusive(self) -> int:
        """Races that could not tell."""
        return sum(one.verdict == "inconclusive" for one in self.judged)

    @property
    def estimate(self) -> float | None:
        """The median effect."""
        effects = [one.effect for one in self.judged if one.effect is not None]
        return median(effects) if effects else None

    @property
    def false_at_most(self) -> float:
        """Upper bound of the rate of false verdicts, one-sided."""
        return upper_bound(self.false, len(self.judged))

    @property
    def found_at_least(self) -> float:
        """Lower bound of the rate at which the difference is found, one-sided."""
        n = len(self.judged)
        return 1 - upper_bound(n - self.found, n)

    @property
    def faults(self) -> list[str]:
        """What is worse than promised, beyond chance, in words."""
        n, words = len(self.judged), []
        if n < len(self.races):
            first = next(one for one in self.races if one.verdict is None)
            words.append(f"{len(self.races) - n} of {len(self.races)} races were not judged: {first.reason}")
        if n and stats.binom.sf(self.false - 1, n, MOST_FALSE) < CHANCE:
            words.append(f"{self.false} of {n} verdicts are false, promised: {MOST_FALSE:.0%} at most")
        if not n or self.check.is_equal:
            return words
        if stats.binom.sf(n - self.found - 1, n, 1 - FEWEST_FOUND) < CHANCE:
            words.append(f"found in {self.found} of {n}, promised: {FEWEST_FOUND:.0%}")
        far = self.estimate is not None and abs(self.estimate - self.check.effect) > ESTIMATE_WITHIN
        if far and n >= FEWEST_FOR_ESTIMATE:
            truth = f"the truth is {100 * self.check.effect:+.1f} %"
            words.append(f"estimated {100 * (self.estimate or 0):+.2f} %, {truth}")
        return words


def upper_bound(events: int, n: int, confidence: float = BOUND) -> float:
    """Of the rate behind `events` in `n` trials, one-sided."""
    return 1.0 if events >= n else float(stats.beta.ppf(confidence, events + 1, n - events))
