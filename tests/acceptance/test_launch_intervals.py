"""Acceptance tests 6 to 8, 10 and 11: intervals of one launch say what they claim, or nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from measures import most
from noise_classes import Array, Noise, ar1, steps
from scipy import stats

from timetrial.statistics.correlation import autocorrelation_time
from timetrial.statistics.dispersion import fences, outliers
from timetrial.statistics.intervals import paired_ratios, positive_location
from timetrial.statistics.quantiles import quantile
from timetrial.statistics.ranks import quantile_ranks
from timetrial.statistics.stopping import STOP_RULES, StopRule, judge, stop_reason
from timetrial.statistics.trimmed import trimmed_mean

PHIS = (0.0, 0.3, 0.6, 0.9)
LENGTH = 1_000
SPREAD = 0.03


def launches(phi: float, spikes: float, trials: int, seed: int) -> tuple[Array, Noise]:
    noise = Noise(step=SPREAD, phi=phi, spikes=spikes)
    return steps(noise, (trials, LENGTH), np.random.default_rng(seed)), noise


def true_quantile(noise: Noise, p: float) -> float:
    """Of a step: lognormal, or, with spikes, the one of a large independent sample."""
    if not noise.spikes:
        return float(np.exp(noise.step * stats.norm.ppf(p)))
    independent = Noise(step=noise.step, phi=0.0, spikes=noise.spikes)
    return float(np.quantile(steps(independent, (2_000_000,), np.random.default_rng(99)), p))


def naive_median_interval(values: Array) -> tuple[float, float]:
    """The interval of most tools: steps taken as independent."""
    low, high = quantile_ranks(len(values))
    assert low
    assert high
    ordered = np.sort(values)
    return float(ordered[low - 1]), float(ordered[high - 1])


@pytest.mark.parametrize("spikes", [0.0, 0.03])
@pytest.mark.parametrize("phi", PHIS)
def test_06_a_median_interval_covers_what_it_says(phi: float, spikes: float) -> None:
    """6: nominal 95 %, 2,000 launches of 1,000 steps: 0.925 to 0.98 of them hold the true median."""
    data, noise = launches(phi, spikes, 2_000, seed=6)
    truth = true_quantile(noise, 0.5)
    found = [quantile(one) for one in data]
    held = np.mean([q is not None and q.low is not None and q.low <= truth <= (q.high or 0) for q in found])
    assert 0.925 <= held <= 0.98


def test_06_an_interval_that_ignores_correlation_fails() -> None:
    """6, negative control: at phi 0.9 the naive interval covers less than half."""
    data, _ = launches(0.9, 0.0, 500, seed=6)
    held = np.mean([low <= 1.0 <= high for low, high in map(naive_median_interval, data)])
    assert held < 0.55


@pytest.mark.parametrize("phi", PHIS)
def test_07_the_effective_size_is_right(phi: float) -> None:
    """7: within 25 % of n (1 - phi) / (1 + phi) for the mean, on average over launches; and never above n."""
    data = ar1(phi, (200, 4_000), np.random.default_rng(7))
    sizes = np.array([len(one) / autocorrelation_time(one) for one in data])
    assert float(np.mean(sizes)) == pytest.approx(4_000 * (1 - phi) / (1 + phi), rel=0.25)
    sizes = [quantile(one) for one in data[:20]]
    assert all(one is not None and 1 <= one.n_effective <= one.n for one in sizes)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.75, 0.95])
@pytest.mark.parametrize("phi", PHIS)
def test_07_other_quantiles_mislead_nobody(phi: float, p: float) -> None:
    """7: at most 5 % of launches show an interval that misses; up to phi 0.6 nearly all show one."""
    trials = 500
    data, noise = launches(phi, 0.0, trials, seed=70)
    truth = true_quantile(noise, p)
    found = [quantile(one, p) for one in data]
    missed = sum(q is not None and q.low is not None and not q.low <= truth <= (q.high or 0) for q in found)
    assert missed <= most(0.05, trials)
    if phi <= 0.6:
        assert sum(q is not None for q in found) >= 0.99 * trials


def run_launch(durations: Array, rule: StopRule) -> tuple[str | None, float, float, float]:
    """Why it stopped, and the interval then, as a launch does it: look, go on, look again."""
    size = rule.next_look(0)
    while True:
        spent = size >= len(durations)
        judged = judge(durations[:size], rule)
        reason = stop_reason(judged, budget_spent=spent, steps_spent=False)
        if reason is not None:
            median = judged.median
            assert median
            assert median.low
            assert median.high
            assert median.half_width
            return reason, median.low, median.high, median.half_width
        size = min(rule.next_look(size), len(durations))


@pytest.mark.parametrize("effort", ["normal", "rigorous"])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_08_stopping_when_it_is_narrow_keeps_intervals_honest(phi: float, effort: str) -> None:
    """8: of launches that stop by themselves at least 92 % hold the true median, and all are as narrow as was
    asked. `looks` grow by 1.25 from 100 steps."""
    rule, trials = STOP_RULES[effort], 120
    rng = np.random.default_rng(8)
    data = 30e6 * steps(Noise(step=SPREAD, phi=phi), (trials, 6_000), rng)
    ends = [run_launch(one, rule) for one in data]
    converged = [end for end in ends if end[0] == "converged"]
    assert len(converged) >= 0.9 * trials
    assert all(half_width <= rule.half_width for *_, half_width in converged)
    missed = sum(not low <= 30e6 <= high for _, low, high, _ in converged)
    assert missed <= most(0.08, len(converged))


def test_08_a_launch_says_why_it_ended() -> None:
    """8: never `converged` without a steady state, without enough steps, or when the interval is too wide."""
    rng = np.random.default_rng(80)
    rule = STOP_RULES["rigorous"]
    flat = 30e6 * steps(Noise(step=0.01), (2_000,), rng)
    drifting = flat * np.linspace(1, 1.2, len(flat))
    noisy = 30e6 * steps(Noise(step=0.5), (1_000,), rng)
    slow = np.array([5e9, 5.1e9, 5.2e9, 5.0e9])  # 4 steps of 5 s

    def ended(durations: Array, *, budget: bool = True) -> str | None:
        return stop_reason(judge(durations, rule), budget_spent=budget, steps_spent=not budget)

    assert ended(flat) == "converged"
    assert ended(drifting) == "no_steady_state"
    assert ended(noisy) == "budget"
    assert ended(noisy, budget=False) == "max_steps"
    assert ended(flat[:90]) == "budget"
    assert ended(slow) == "budget"
    few = judge(slow, rule).median
    assert few  # of 4 values, which cannot carry 95 %
    assert (few.low, few.high, few.half_width) == (None, None, None)
    assert stop_reason(judge(noisy, rule), budget_spent=False, steps_spent=False) is None


def test_10_a_percentile_is_refused_unless_the_sample_carries_it() -> None:
    """10: p99 needs 1,000 effective steps; correlated steps are worth fewer."""
    rng = np.random.default_rng(10)
    independent = rng.permutation(np.linspace(1, 2, 1_200))
    assert quantile(independent[:900], 0.99) is None
    assert quantile(np.concatenate([independent] * 4), 0.99) is not None
    correlated = np.exp(SPREAD * ar1(0.95, (1_200,), rng))
    assert quantile(correlated, 0.95) is None


def test_10_the_binomial_bound_is_the_published_one() -> None:
    """10: to be 99 % sure that the largest value is beyond p99 takes 459 values, ln(0.01) / ln(0.99)."""
    assert quantile_ranks(458, 0.99, 0.98)[1] is None
    assert quantile_ranks(459, 0.99, 0.98)[1] == 459


def test_11_unequal_numbers_never_make_a_difference() -> None:
    """11: identical times stay identical when one side has fewer launches."""
    times = {block: 1e6 * (1 + 0.01 * (block % 3)) for block in range(12)}
    ratio = positive_location(paired_ratios(times, {block: times[block] for block in range(0, 12, 2)}))
    assert ratio
    assert (ratio.estimate, ratio.low, ratio.high) == (1.0, 1.0, 1.0)
    assert paired_ratios({0: 1.0}, {1: 2.0}) == []


@pytest.mark.parametrize("n", [6, 9, 50, 1_023, 1_025, 20_000, 100_000])
def test_11_more_confidence_is_never_a_narrower_interval(n: int) -> None:
    """11: the 99.9 % interval holds the 95 % one, also above 1,024 values."""
    values = np.random.default_rng(n).standard_normal(n)
    ranks = [quantile_ranks(n, 0.5, confidence) for confidence in (0.9, 0.95, 0.99, 0.999, 0.9999)]
    lows = [low or 0 for low, _ in ranks]
    assert lows == sorted(lows, reverse=True)
    assert all(high is None or high == n + 1 - low for (_, high), low in zip(ranks, lows, strict=True))
    assert n <= 9 or len(set(lows)) == len(lows)
    intervals = [trimmed_mean(values).interval(confidence) for confidence in (0.9, 0.95, 0.99, 0.999)]
    assert all(a[0] > b[0] and a[1] < b[1] for a, b in itertools.pairwise(intervals))


def test_11_fences_enclose_what_is_no_outlier() -> None:
    """11: a fence is a bound, not the first outlier; outliers are counted once and nothing is dropped."""
    values = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 9.0]
    low, high = fences(values)
    assert low < 1.0
    assert 1.07 < high < 1.2
    assert outliers(values).high_severe == 1
    assert outliers([*values, 1.17]).high_mild + outliers([*values, 1.17]).high_severe == 2
    assert outliers([2.0] * 9) == outliers([1.0])
