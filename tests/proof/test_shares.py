"""How much of each part is in a whole, and which rows stand out."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.agreement.rows import standing_out
from timetrial.agreement.shares import Shares

RNG = np.random.default_rng(1)
PARTS = [{"weight": RNG.normal(size=(2, 3)), "bias": RNG.normal(size=2)} for _ in range(4)]


def whole_of(*shares: float) -> dict[str, np.ndarray]:
    pairs = list(zip(shares, PARTS, strict=True))
    return {name: sum(share * part[name] for share, part in pairs) for name in PARTS[0]}


@pytest.mark.parametrize("shares", [(1.0, 1.0, 1.0, 1.0), (0.25, 0.0, 1.0, 0.5)])
def test_the_shares_of_all_are_found_in_any_order(shares: tuple[float, ...]) -> None:
    fit: Shares[int] = Shares(whole_of(*shares))
    for number in (2, 0, 3, 1):
        fit.add(number, PARTS[number])
    assert [fit.of[number] for number in range(4)] == pytest.approx(shares, abs=1e-6)
    assert all(np.max(np.abs(values)) < 1e-6 for values in fit.rest().values())


def test_no_share_is_below_0_or_above_1() -> None:
    fit: Shares[str] = Shares(whole_of(3.0, -2.0, 0.0, 0.0))
    fit.add("three times", PARTS[0])
    fit.add("the other way", PARTS[1])
    assert fit.of == {"three times": 1.0, "the other way": 0.0}
    rest = fit.rest()["weight"]
    assert rest == pytest.approx(2 * PARTS[0]["weight"] - 2 * PARTS[1]["weight"])


def test_a_row_stands_out_among_others_and_by_a_tenth_of_what_is_allowed() -> None:
    rows = RNG.normal(size=(20, 50))
    rows[7] *= 6
    size = float(np.sqrt(np.sum(rows[7] ** 2)))
    assert np.flatnonzero(standing_out({"weight": rows}, 0.0)).tolist() == [7]
    assert np.flatnonzero(standing_out({"weight": rows}, 9 * size)).tolist() == [7]
    assert not np.any(standing_out({"weight": rows}, 11 * size))
    assert not np.any(standing_out({"weight": RNG.normal(size=(20, 50))}, 0.0))
