"""Who is launched further: the case whose interval is widest, with the case it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.results import Results
from timetrial.report.table import to_text


@pytest.fixture
def run(networks: Any, fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    return lambda *words: run_experiment(
        load_words(["network=mlp", "threads=1", *words], load_network=networks),
        results_folder,
        quiet=True,
        engine=fake.engine(),
    )


def counted(fake: FakeEngine) -> dict[str, int]:
    return dict(Counter(plan.case.backend for plan in fake.log if plan.purpose == "speed"))


def unsteady(*backends: str) -> Callable[[Any], float]:
    """Every other launch of these takes 30 % longer."""
    return lambda plan: 1.3 if plan.case.backend in backends and plan.block % 2 else 1.0


def test_narrow_intervals_get_nothing(run: Callable[..., Results], fake: FakeEngine) -> None:
    fake.factor = lambda plan: 1 / (1 + 0.01 * plan.block)  # fakes.py adds the reverse: all alike
    run("backend=fast,slow", "effort=quick")
    assert counted(fake) == {"fast": 5, "slow": 5}


def test_the_widest_and_its_reference_in_one_block(run: Callable[..., Results], fake: FakeEngine) -> None:
    fake.factor = unsteady("other")
    results = run("backend=fast,slow,other", "effort=normal")
    # 30 launches of a second each leave 15 s: seven blocks of two.
    assert counted(fake) == {"fast": 17, "slow": 10, "other": 17}
    blocks: dict[int, set[str]] = {}
    for plan in fake.log:
        if plan.purpose == "speed" and plan.block >= 10:
            blocks.setdefault(plan.block, set()).add(plan.case.backend)
    assert sorted(blocks) == list(range(10, 17))
    assert all(block == {"fast", "other"} for block in blocks.values())
    assert {row.case.backend: row.ratio.n for row in results if row.ratio} == {"slow": 10, "other": 17}
    assert "10 to 17 launches each" in to_text(results, width=150)


def test_cases_that_are_nearly_as_wide_share_the_reference(
    run: Callable[..., Results], fake: FakeEngine
) -> None:
    fake.factor = unsteady("slow", "other")
    run("backend=fast,slow,other", "effort=normal")
    assert counted(fake) == {"fast": 15, "slow": 15, "other": 15}


def test_a_single_case_is_measured_by_its_own_interval(run: Callable[..., Results], fake: FakeEngine) -> None:
    fake.factor = unsteady("fast")
    run("backend=fast", "effort=normal")
    assert counted(fake) == {"fast": 15}


def test_a_number_of_launches_that_was_asked_for_is_exact(
    run: Callable[..., Results], fake: FakeEngine
) -> None:
    fake.factor = unsteady("slow")
    results = run("backend=fast,slow", "effort=normal", "launches=6")
    assert counted(fake) == {"fast": 6, "slow": 6}
    assert "6 launches each" in to_text(results, width=150)


def test_what_failed_gets_nothing_more(run: Callable[..., Results], fake: FakeEngine) -> None:
    fake.factor = unsteady("slow")
    run("backend=fast,flaky,slow", "effort=quick")
    assert counted(fake)["flaky"] == 5
    assert counted(fake)["slow"] == 6  # 15 s of launches leave 2.25 s: one block of two
