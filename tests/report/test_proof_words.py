"""'all proven equal' and a green 'faster' are said of contenders only that nothing speaks against."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.model import Parity
from timetrial.records.results import Results
from timetrial.report.proof_words import UNPROVEN as UNPROVEN_WORD
from timetrial.report.proof_words import Shown, proof_words
from timetrial.report.table import CasesTable, to_text

PASSED = Parity(status="passed")
TIES = Parity(status="passed", notes=["ties"])
FAILED = Parity(status="failed", reason="conv1.weight")
UNPROVEN = Parity(status="unproven", reason="a step of one's own shows no tensors")


@pytest.mark.parametrize(
    ("contenders", "words"),
    [
        ([("a", PASSED), ("b", PASSED)], "all contenders proven equal"),
        ([("a", PASSED)], "proven"),
        ([], ""),
        ([("a", PASSED), ("b", TIES)], "proven equal with notes: b (ties)"),
        ([("a", PASSED), ("b", UNPROVEN)], "not proven: b"),
        ([("a", PASSED), ("b", None)], "not proven: b"),
        ([("a", PASSED), ("b", FAILED)], "NOT equal: b"),
        (
            [("a", TIES), ("b", FAILED), ("c", None)],
            "NOT equal: b; not proven: c; proven with notes: a (ties)",
        ),
    ],
)
def test_what_a_header_says(contenders: list[tuple[str, Parity | None]], words: str) -> None:
    assert proof_words([Shown(*one) for one in contenders]) == words


def test_a_timed_launch_that_is_wrong_undoes_its_proof() -> None:
    assert proof_words([Shown("a", PASSED), Shown("b", PASSED, is_wrong=True)]) == "NOT equal: b"


@pytest.fixture
def measure(fake: FakeEngine, results_folder: Path) -> Callable[..., Results]:
    def measure(*words: str) -> Results:
        asked = load_words(["network=mlp", "threads=1", "launches=6", *words], load_network=fakes.network)
        return run_experiment(asked, results_folder, quiet=True, engine=fake.engine())

    return measure


def styles(results: Results) -> dict[str, tuple[str, str]]:
    """Backend -> the cell of the comparison and its color."""
    return {line.axes[0]: line.cells[1] for line in CasesTable(results).lines}


def test_unproven_rows_are_never_green(measure: Callable[..., Results], fake: FakeEngine) -> None:
    words, style = styles(measure("backend=slow,fast"))["fast"]
    assert (style, UNPROVEN_WORD in words) == ("green", False)
    fake.parity = {"fast": UNPROVEN}
    results = measure("backend=slow,fast")
    words, style = styles(results)["fast"]
    assert (style, UNPROVEN_WORD in words) == ("yellow", True)
    assert "not proven: fast" in to_text(results, width=200)


def test_nor_is_a_proven_row_beside_an_unproven_reference(
    measure: Callable[..., Results], fake: FakeEngine
) -> None:
    fake.parity = {"slow": UNPROVEN, "fast": UNPROVEN}
    results = measure("backend=slow,fast")
    fake.parity = {}
    words, style = styles(results)["fast"]
    assert (style, UNPROVEN_WORD in words) == ("yellow", True)
