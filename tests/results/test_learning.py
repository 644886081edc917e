"""What learning launches say of accuracy: rows proven equal share a figure, others have their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.figures.plots_data import learning_cases
from timetrial.records import store
from timetrial.records.model import Parity
from timetrial.report.rendering import to_text
from timetrial.results.results import Results

IMAGES = 360
TRUTH = np.arange(IMAGES) % 10


def answers(plan: Any) -> Any:
    """Ten images are too hard for anyone; a few more by seed and contender."""
    rng = np.random.default_rng([plan.seed, *plan.case.backend.encode()])
    wrong = [*range(10), *rng.integers(10, IMAGES, rng.integers(1, 5))]
    predicted = TRUTH.copy()
    predicted[wrong] = (TRUTH[wrong] + 1) % 10
    return np.stack([predicted, TRUTH]).astype(np.int32)


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    fake.answers = answers
    always = ["network=mlp", "threads=1", "launches=2", "epochs=3"]
    return lambda *words: run_experiment(
        load_words([*always, *words], load_network=fakes.network),
        results_folder,
        quiet=True,
        engine=fake.engine(),
    )


def test_proven_rows_share_one_figure(run: Callable[..., Results]) -> None:
    results = run("backend=fast,slow,other")
    first, *others = results.rows
    assert [row.accuracy_rows for row in results] == [3, 3, 3]
    assert all(row.accuracy == first.accuracy for row in others)
    assert any(row.accuracy_own != first.accuracy_own for row in others), "each keeps its own beside it"
    assert first.accuracy is not None
    assert first.accuracy.n == 3
    drawn = [
        [run.seconds_at(run.evaluated_after)[-1] for run in case.runs] for case in learning_cases(results)
    ]
    assert [len(times) for times in drawn] == [3, 3, 3], "each seed once, whoever learned it"
    assert drawn[0] != drawn[1], "at the row's own step time"
    own = [row.accuracy_own.n for row in results if row.accuracy_own is not None]
    assert own == [1, 2, 2], "the first seed, and one of the others for all"
    assert "accuracy: of 3 rows proven to compute the same, together" in " ".join(to_text(results).split())
    case = results.to_json()["cases"][1]
    assert case["accuracy_interval"]["rows"] == 3
    assert 0 <= case["accuracy_against_reference"]["p_value"] <= 1


def test_a_row_that_learned_less_keeps_its_own_figure_and_it_is_said(
    run: Callable[..., Results], fake: FakeEngine
) -> None:
    def worse(plan: Any) -> Any:
        found = answers(plan)
        if plan.case.backend == "other":
            found[0, 20:60] = (TRUTH[20:60] + 1) % 10
        return found

    fake.answers = worse
    fast, slow, other = run("backend=fast,slow,other").rows
    assert (fast.accuracy_rows, slow.accuracy_rows, other.accuracy_rows) == (2, 2, 1)
    assert other.accuracy == other.accuracy_own
    assert any("its answers to test images differ, beyond chance" in text for text in other.warnings)
    assert other.accuracy_against is not None
    assert other.accuracy_against.only_second >= 40
    assert other.accuracy_against.p_value < 0.01


def test_a_row_of_its_own_is_held_against_all_that_its_reference_shares_seeds_with(
    run: Callable[..., Results], fake: FakeEngine
) -> None:
    """It learns each seed; of the reference's the others have learned some."""
    fake.parity["other"] = Parity(status="passed", notes=["reduced"])

    def worse(plan: Any) -> Any:
        found = answers(plan)
        if plan.case.backend == "other" and plan.seed > 1:
            found[0, 20:60] = (TRUTH[20:60] + 1) % 10
        return found

    fake.answers = worse
    fast, slow, other = run("backend=fast,slow,other", "learning_seeds=4").rows
    assert (fast.accuracy_rows, slow.accuracy_rows, other.accuracy_rows) == (2, 2, 1)
    assert other.accuracy is not None
    assert other.accuracy.n == 4
    assert other.accuracy_against is not None
    assert other.accuracy_against.only_second >= 40, "with three of four seeds"


def test_records_without_answers_are_never_exact(run: Callable[..., Results], fake: FakeEngine) -> None:
    fake.answers = None
    for row in run("backend=fast,slow"):
        assert row.accuracy_rows == 1
        assert row.accuracy is not None
        assert (row.accuracy.half_width or 0) > 0.01, "360 images carry no more"


def test_a_damaged_file_of_answers_is_named(run: Callable[..., Results]) -> None:
    results = run("backend=fast,slow")
    (file, *_) = results.path.glob(f"launches/*/{store.ANSWERS_FILE}")
    file.write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"answers\.npy' is damaged"):
        _ = Results(results.path).rows
