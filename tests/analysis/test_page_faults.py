"""Launches of a row that differ in page faults are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timetrial.analysis.page_faults import unequal_page_faults
from timetrial.cautions import advice_for


def launches(faults: list[float | None], step_ns: float = 20_000_000.0) -> list[Any]:
    return [
        SimpleNamespace(
            counts=True,
            step_time_ns=step_ns,
            record=SimpleNamespace(witnesses={} if one is None else {"page_faults_per_step": one}),
        )
        for one in faults
    ]


def test_two_kinds_of_launches_are_named() -> None:
    (said,) = unequal_page_faults(launches([1.0, 2_400.0, 3.0]))
    assert "launches differ in page faults" in said
    assert "malloc.trim_threshold" in advice_for(said)


@pytest.mark.parametrize(
    "faults", [[], [2_400.0], [None, None], [2_400.0, 2_500.0], [0.0, 300.0], [None, 9_000.0]]
)
def test_what_costs_little_or_is_the_same_is_not(faults: list[float | None]) -> None:
    assert unequal_page_faults(launches(faults)) == []
