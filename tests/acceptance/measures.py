"""How often a rule says what, over many simulated races, and how much of it a claimed rate allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from noise_classes import Array, Noise, log_ratios, sessions
from scipy import stats

from timetrial.statistics.verdict import Decision, Rule, Verdict, decide

BATCH = 250  # races simulated at once: 100 MB


@dataclass(frozen=True)
class Rates:
    """Counts of verdicts over simulated races."""

    trials: int
    counts: Counter[Verdict]
    mean_pairs: float

    def share(self, *verdicts: Verdict) -> float:
        """Of races that ended in one of these."""
        return sum(self.counts[verdict] for verdict in verdicts) / self.trials


def run_race(ratios: Sequence[float] | Array, rule: Rule) -> Decision:
    """The verdict of a race whose pairs come out like this: looks as planned, each sees the pairs so far."""
    for look in rule.looks:
        decision = decide(list(ratios[:look]), rule, "lower", last=look == rule.most_pairs)
        if decision is not None:
            return decision
    raise AssertionError("the last look decides")


def rates(noise: Noise, effect: float, trials: int, seed: int, rule: Rule | None = None) -> Rates:
    """Races of a challenger that takes `effect` longer."""
    rng = np.random.default_rng(seed)
    rule = rule or Rule()
    decisions = [
        run_race(ratios, rule)
        for start in range(0, trials, BATCH)
        for ratios in log_ratios(sessions(noise, effect, min(BATCH, trials - start), rng))
    ]
    return Rates(
        trials, Counter(one.verdict for one in decisions), sum(one.pairs for one in decisions) / trials
    )


def most(rate: float, trials: int) -> int:
    """The 99.9 % quantile of how often something of this rate happens: more refutes the rate."""
    return int(stats.binom.ppf(0.999, trials, rate))


def fewest(rate: float, trials: int) -> int:
    """The 0.1 % quantile: fewer refutes the rate."""
    return int(stats.binom.ppf(0.001, trials, rate))


def pooled_t(durations: Array) -> bool:
    """What some tools do: Student's t over all steps of all launches of a side. The data of one race: (pairs,
    rounds, side, steps)."""
    base, challenger = (durations[:, :, side].ravel() for side in (0, 1))
    return bool(stats.ttest_ind(base, challenger).pvalue < 0.05)


def steps_mann_whitney(durations: Array) -> bool:
    """What others do: Mann-Whitney over the steps of one launch each."""
    base, challenger = (durations[0, :, side].ravel() for side in (0, 1))
    return bool(stats.mannwhitneyu(base, challenger).pvalue < 0.05)


def bare_threshold(durations: Array) -> bool:
    """What most do: two numbers, and 5 %."""
    base, challenger = (np.mean(durations[0, :, side]) for side in (0, 1))
    return bool(abs(challenger / base - 1) > 0.05)
