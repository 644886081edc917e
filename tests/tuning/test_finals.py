"""Finals: whom one look cannot tell from the fastest, and whom several can."""

from __future__ import annotations

import pytest

from timetrial.tuning.finals import MOST, MOST_LOOKS, finalists, look_sd
from timetrial.tuning.tuned import LOOK_SD, Trial, ranked


def trial(name: str, *looks: float) -> Trial:
    return Trial(name, {"backend": name}, looks, "ok" if looks else "crash")


def names(trials: list[Trial]) -> list[str]:
    return [one.case for one in trials]


def test_who_is_near_the_fastest_is_looked_at_again() -> None:
    some = [trial("far", -0.2), trial("near", -0.28), trial("first", -0.3), trial("failed")]
    assert names(finalists(some)) == ["first", "near"]


def test_nobody_is_where_it_is_clear() -> None:
    assert finalists([trial("first", -0.3), trial("far", -0.2)]) == []
    assert finalists([trial("alone", -0.3), trial("failed")]) == []
    assert finalists([trial("failed")]) == []


def test_nobody_is_who_is_slower_than_the_base() -> None:
    assert finalists([trial("one", 0.2), trial("two", 0.2)]) == []
    assert names(finalists([trial("one", 0.02), trial("two", 0.03)])) == ["one", "two"]


def test_fewer_from_heat_to_heat() -> None:
    looked: dict[str, tuple[float, ...]] = {str(k): (-0.3 - 0.001 * k,) for k in range(20)}
    sizes = []
    while chosen := finalists([trial(name, *looks) for name, looks in looked.items()]):
        sizes.append(len(chosen))
        for one in chosen:
            looked[one.case] += (looked[one.case][0],)
    assert sizes == [MOST, 3, 2, 2]
    assert max(map(len, looked.values())) == MOST_LOOKS


def test_a_lucky_look_is_found_out() -> None:
    lucky, steady = trial("lucky", -0.33), trial("steady", -0.3)
    assert names(ranked([steady, lucky])) == ["lucky", "steady"]
    again = [trial("lucky", -0.33, -0.25), trial("steady", -0.3, -0.31), trial("third", -0.305)]
    # One that was looked at once is not before one that is as fast after two.
    assert names(ranked(again)) == ["steady", "third", "lucky"]


def test_intervals_are_as_wide_as_looks_scatter() -> None:
    assert look_sd([trial("one", -0.3), trial("two", -0.2)]) == LOOK_SD
    restless = [trial("one", -0.3, -0.1), trial("two", -0.2, -0.05), trial("three", -0.1)]
    assert look_sd(restless) > 0.05
    calm = [trial(str(k), -0.3, -0.3) for k in range(20)]
    assert look_sd(calm) == pytest.approx(LOOK_SD / 6**0.5, rel=1e-6)
