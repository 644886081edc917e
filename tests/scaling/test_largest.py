"""The largest batch within so much memory, of contenders whose memory is known; and the search alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.scaling import LargestBatches
from timetrial.scaling.largest import search
from timetrial.statistics.bisection import Bracket, largest

MB, KB = 1 << 20, 1 << 10


@pytest.fixture
def found(fake: FakeEngine, results_folder: Path) -> Callable[..., LargestBatches]:
    fake.held = lambda plan: 40 * MB + 100 * KB * plan.case.workload.batch_size

    def searched(memory: int, *words: str, precision: float = 0.01) -> LargestBatches:
        experiment = load_words(["network=mlp", "threads=1", *words], load_network=fakes.network)
        return search(
            experiment, results_folder, memory, precision=precision, quiet=True, engine=fake.engine()
        )

    return searched


def test_it_is_predicted_searched_and_confirmed(
    fake: FakeEngine, found: Callable[..., LargestBatches]
) -> None:
    whole = found(100 * MB, "backend=fast", precision=0.0005)
    [one] = whole.batches
    assert (one.outcome, one.batch_size, one.beyond) == ("ok", 614, 615)
    assert one.held_bytes == 40 * MB + 614 * 100 * KB
    assert one.predicted is not None
    assert one.predicted.estimate == pytest.approx(614.4)
    sizes = [plan.case.workload.batch_size for plan in fake.log]
    assert sizes == [64, 128, 256, 512, 614, 615, 614]
    assert one.launches == len(sizes) == len(list(whole.folder.glob("*/*/record.json")))
    assert "614" in repr(whole)
    assert "615 holds 100.1 MB" in repr(whole)
    assert (whole.folder / "largest.json").is_file()


def test_a_line_that_misleads_costs_launches_only(
    fake: FakeEngine, found: Callable[..., LargestBatches]
) -> None:
    def held(plan: Any) -> int:
        size = plan.case.workload.batch_size
        return 40 * MB + (100 if size < 300 else 200) * KB * size

    fake.held = held
    [one] = found(100 * MB, "backend=fast").batches
    assert one.batch_size is not None
    assert one.beyond is not None
    assert one.batch_size <= 307 < one.beyond <= 1.01 * one.batch_size + 1


def test_the_data_set_may_end_first(found: Callable[..., LargestBatches]) -> None:
    [one] = found(900 * MB, "backend=fast").batches
    assert (one.batch_size, one.beyond, one.why_not) == (1437, None, "all samples of the data set")


def test_who_does_not_run_or_fit_says_why(found: Callable[..., LargestBatches]) -> None:
    crashed, absent = found(100 * MB, "backend=crashes,absent").batches
    assert crashed.outcome == "crash"
    assert (crashed.reason or "").startswith("not even a batch of 1: the contender crashes")
    assert absent.outcome == "unavailable"
    [small] = found(30 * MB, "backend=fast").batches
    assert (small.outcome, small.batch_size) == ("capped", None)
    assert "not even a batch of 1: 1 holds 40.10 MB" in (small.reason or "")


@pytest.mark.parametrize(
    ("memory", "words", "precision", "message"),
    [
        (2 * 10**9, (), 0.01, "memory=1.863 GB, and 953.7 MB are free here"),
        (MB, ("batch_size=1,2",), 0.01, "the search is for the batch size, and the cases have several"),
        (MB, (), 0.0, "precision is 0.0; expected a fraction"),
    ],
)
def test_what_cannot_be_asked(
    found: Callable[..., LargestBatches], memory: int, words: tuple[str, ...], precision: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        found(memory, "backend=fast", *words, precision=precision)


@pytest.mark.parametrize("guess", [1, 7, 99, 100, 101, 500, 1000])
@pytest.mark.parametrize("true", [0, 1, 2, 100, 999, 1000])
def test_the_search_finds_it_from_anywhere(guess: int, true: int) -> None:
    tries: list[int] = []

    def does_fit(size: int) -> bool:
        assert 1 <= size <= 1000
        tries.append(size)
        return size <= true

    found = largest(does_fit, guess, 1000, 0.0)
    assert found == Bracket(true or None, None if true == 1000 else true + 1)
    assert len(tries) <= 30


def test_what_fits_once_but_not_again_is_not_the_answer() -> None:
    lucky = iter([True, False, False])  # 50 fits, 51 does not, 50 does not when it is tried again
    found = largest(lambda size: next(lucky, size <= 48), 50, 1000, 0.0)
    assert found == Bracket(48, 49)


def test_who_never_fits_twice_has_no_answer() -> None:
    tries: dict[int, int] = {}

    def does_fit(size: int) -> bool:
        tries[size] = tries.get(size, 0) + 1
        return tries[size] == 1

    assert largest(does_fit, 50, 50, 0.0).fits is None
