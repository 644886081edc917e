"""The largest batch within so much memory, of contenders whose memory is known."""

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
