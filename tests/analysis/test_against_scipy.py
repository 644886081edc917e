"""scipy.stats takes a second to import, on every command. What is computed without it is what it says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from timetrial.statistics.accuracy import PARTED, discordance
from timetrial.statistics.correlation import autocorrelation_time
from timetrial.statistics.ranks import quantile_ranks
from timetrial.statistics.steady import theil_sen
from timetrial.statistics.trimmed import TRIM, trimmed_location

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


def _ranks(n: int, p: float, tail: float) -> tuple[int | None, int | None]:
    """By definition, over all ranks."""
    below = stats.binom.cdf(np.arange(-1, n + 1), n, p)  # P(B <= k - 1) at k
    low = int(np.flatnonzero(below <= tail)[-1])
    beyond = stats.binom.sf(np.arange(-1, n), n, p)  # P(B >= k) at k
    high = np.flatnonzero(beyond <= tail)
    return low or None, int(high[0]) if len(high) else None


@given(
    n=st.integers(1, 3000),
    p=st.sampled_from([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]),
)
def test_ranks(n: int, p: float, confidence: float) -> None:
    assert quantile_ranks(n, p, confidence) == _ranks(n, p, (1 - confidence) / 2)


@pytest.mark.parametrize("n", [1_000_000, 50_000_000])
def test_ranks_of_many(n: int) -> None:
    low, high = quantile_ranks(n)
    assert low is not None
    assert stats.binom.cdf(low - 1, n, 0.5) <= 0.025 < stats.binom.cdf(low, n, 0.5)
    assert high == n + 1 - low


@pytest.mark.parametrize("carried", [0.0, 0.9, 0.999, 0.99999])
@pytest.mark.parametrize("n", [7, 100, 20_000, 40_000, 120_000])
def test_autocorrelation_times(n: int, carried: float) -> None:
    """Few lags, lags near by in frames, and all lags at once are the same series."""
    series = signal.lfilter([1.0], [1.0, -carried], np.random.default_rng(n).standard_normal(n))
    centered = series - series.mean()
    products = signal.correlate(centered, centered, method="fft")[n - 1 :]
    sums = (products[: n // 2 * 2] / products[0]).reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(sums <= 0)) if np.any(sums <= 0) else len(sums)
    expected = max(1.0, 2 * float(np.minimum.accumulate(sums[:stop]).sum()) - 1)
    assert autocorrelation_time(series) == pytest.approx(expected, rel=1e-6)


@given(st.lists(NUMBERS, min_size=2, max_size=40))
def test_slopes(values: list[float]) -> None:
    assert theil_sen(np.array(values)) == pytest.approx(stats.theilslopes(values).slope, rel=1e-12, abs=1e-9)


@given(st.lists(st.lists(NUMBERS, min_size=7, max_size=7), min_size=1, max_size=5))
def test_trimmed_means(rows: list[list[float]]) -> None:
    expected = stats.trim_mean(np.array(rows), TRIM, axis=-1)
    assert trimmed_location(rows) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(first=st.integers(0, 60), second=st.integers(0, 60))
def test_signs(first: int, second: int) -> None:
    one, other = np.zeros((1, 130)), np.zeros((1, 130))
    one[0, :first] = 1
    other[0, 60 : 60 + second] = 1
    both = first + second
    on_images = stats.binomtest(first, both).pvalue if both else 1.0
    over_one_seed = 2 * stats.norm.sf(abs(first - second) / 130, scale=PARTED * np.sqrt(2))
    expected = max(on_images, over_one_seed)
    assert discordance(one, other).p_value == pytest.approx(expected, rel=1e-12)


def test_no_command_waits_for_it() -> None:
    modules = "timetrial.cli.main, timetrial.experiment.runner, timetrial.report.detail, timetrial.races"
    code = f"import sys, {modules}; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
