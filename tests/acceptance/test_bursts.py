"""Steps whose work comes in bursts: the verdict is that of the time per step, whatever a median would say."""

from __future__ import annotations

from collections import Counter

import burst_rates
import numpy as np
import pytest
from burst_rates import KINDS, even, periodic, race


def verdicts(mean: float, kind: str, trials: int) -> Counter[str]:
    rng = np.random.default_rng(611)
    return Counter(race(even, KINDS[kind](mean), rng) for _ in range(trials))


@pytest.mark.parametrize("kind", ["a step in 4", "a step in 64", "a step in 4, by chance", "a buffer of 8"])
def test_twice_the_work_is_worse(kind: str) -> None:
    """In all but one step of these the two take the same time, or the challenger less."""
    assert verdicts(2.0, kind, 12) == {"worse": 12}


@pytest.mark.parametrize("kind", ["a step in 2", "a step in 64", "a buffer of 32"])
def test_five_percent_are_never_better(kind: str) -> None:
    found = verdicts(1.05, kind, 12)
    assert found["better"] == 0
    assert found["worse"] >= 10


def test_turns_that_span_no_period_would_not_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its long steps lie behind all that short turns take."""
    monkeypatch.setattr(burst_rates, "span_of", lambda series: 1)
    rng = np.random.default_rng(612)
    assert Counter(race(even, periodic(256, 2.0), rng) for _ in range(5))["worse"] == 0
