"""The ratio of what all turns took."""

from __future__ import annotations

import math

import numpy as np
import pytest

from timetrial.analysis.pairs import GATE, step_time_log_ratios
from timetrial.statistics.totals import FEWEST, log_ratio, scatter_of_totals


def test_bursts_count_with_their_share() -> None:
    """Every fourth turn takes five times as long: twice as long in all, which no median would say."""
    bursty = np.tile([1.0, 1.0, 1.0, 5.0], 4)
    assert log_ratio(np.ones(16), bursty) == pytest.approx(math.log(2))
    said = step_time_log_ratios([np.ones(4)] * 4, [bursty[:4]] * 4)
    assert said[GATE] == pytest.approx(math.log(2))
    assert said["median"] == said["p25"] == 0


def test_what_slows_both_down_is_no_scatter() -> None:
    level = np.exp(np.random.default_rng(1).standard_normal(20))
    assert log_ratio(level, 1.1 * level) == pytest.approx(math.log(1.1))
    assert scatter_of_totals(level, 1.1 * level) == pytest.approx(0, abs=1e-12)


def test_the_scatter_of_a_round_is_that_of_the_ratio() -> None:
    """Over 4,000 pairs of 25 rounds the ratio has the standard deviation that each pair says."""
    rng = np.random.default_rng(2)
    base, challenger = np.exp(0.1 * rng.standard_normal((2, 4000, 25)))
    said = [scatter_of_totals(one, other) for one, other in zip(base, challenger, strict=True)]
    seen = np.std([log_ratio(one, other) for one, other in zip(base, challenger, strict=True)])
    assert np.mean([one for one in said if one is not None]) / 5 == pytest.approx(seen, rel=0.05)


def test_few_rounds_have_no_scatter() -> None:
    assert scatter_of_totals(np.ones(FEWEST - 1), np.ones(FEWEST - 1)) is None
