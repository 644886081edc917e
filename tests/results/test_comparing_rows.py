"""results.compare(): two stored rows of one experiment."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.results.results import Results


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def measure(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return measure


def test_faster_slower_and_the_same(measure: Callable[..., Results]) -> None:
    results = measure("backend=fast,slow", "threads=1,1", "launches=6")
    fast, again, slow, _ = results.rows
    worse = results.compare(fast, slow)
    assert worse.verdict == "worse"
    assert worse.effect is not None
    assert worse.effect.low < worse.effect.estimate < worse.effect.high
    assert worse.effect.estimate == pytest.approx(1, rel=0.05)
    assert worse.pairs == len(worse.log_ratios) == 6
    better = results.compare(results.sel(backend="slow", repeat=1), {"backend": "fast", "repeat": 1})
    assert better.verdict == "better"
    assert better.log_ratios == pytest.approx([-one for one in worse.log_ratios])
    same = results.compare(fast.case.id, again.case.id)
    assert same.verdict == "same"
    assert same.effect is not None
    assert same.effect.estimate == 0
    assert repr(worse).startswith("slow, ")
    assert "worse, step time +9" in repr(worse)


def test_scatter_is_inconclusive_and_says_what_could_be_seen(
    measure: Callable[..., Results], fake: FakeEngine
) -> None:
    chance = random.Random(1)
    fake.factor = lambda plan: chance.uniform(0.8, 1.2)
    found = (results := measure("backend=fast,slow", "threads=2,1", "launches=8")).compare(
        {"backend": "fast", "threads": 1}, {"backend": "slow", "threads": 2}
    )
    assert found.verdict == "inconclusive"
    assert found.minimal_detectable_effect is not None
    assert f"{100 * found.minimal_detectable_effect:.1f} % cannot be seen" in repr(found)
    assert len(results) == 4


@pytest.mark.parametrize(
    ("words", "challenger", "reason"),
    [
        (("backend=fast,slow", "launches=3"), "slow", "3 pairs of launches: at least 4 are needed"),
        (("backend=fast,flaky", "launches=6"), "flaky", "flaky is crash: once"),
        (("backend=fast,absent", "launches=6"), "absent", "absent is unavailable: .*pip install absent"),
    ],
)
def test_what_cannot_be_judged_has_no_verdict(
    measure: Callable[..., Results], words: tuple[str, ...], challenger: str, reason: str
) -> None:
    found = measure(*words).compare({"backend": "fast"}, {"backend": challenger})
    assert found.verdict is None
    assert found.effect is None
    assert found.reason is not None
    assert re.match(reason, found.reason)
    assert "not judged" in repr(found)


def test_other_experiments_and_machines_are_refused(measure: Callable[..., Results], tmp_path: Path) -> None:
    results, other = (measure("backend=fast,slow", "launches=6") for _ in range(2))
    for elsewhere in (other.rows[1], other.sel(backend="slow")):
        with pytest.raises(InputError, match=r"of another experiment, .* timetrial\.race\(a, b\) measures"):
            results.compare(results.rows[0], elsewhere)
    file = other.path / "experiment.json"
    file.write_text(file.read_text().replace("Test CPU", "Other CPU"))
    with pytest.raises(InputError, match=r"on another machine \(Other CPU, not Test CPU\)"):
        results.compare(results.rows[0], Results(other.path).rows[1])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("0123", "no case '0123'"),
        ({"backend": "slow"}, r"between two rows; this chooses 2: .*slow"),
        ({"backend": "slwo"}, "No case has backend='slwo'"),
        ({"callable": "mine:slwo"}, "No case has callable='mine:slwo'"),
    ],
)
def test_a_row_must_be_one(measure: Callable[..., Results], chosen: Any, message: str) -> None:
    results = measure("backend=fast,slow", "threads=1,2", "launches=1")
    with pytest.raises(InputError, match=message):
        results.compare(results.rows[0], chosen)


def test_different_work_is_refused(measure: Callable[..., Results]) -> None:
    results = measure("backend=fast", "batch_size=32,64", "launches=6")
    with pytest.raises(InputError, match=r"differ in batch_size \(32, 64\)"):
        results.compare({"batch_size": 32}, {"batch_size": 64})
