"""'all proven equal' and a green 'faster' are said of contenders only that nothing speaks against."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.proof.parity import merged
from timetrial.records.model import Comparison, Parity
from timetrial.report.detail import CaseDetail
from timetrial.report.proof_words import UNPROVEN as UNPROVEN_WORD
from timetrial.report.proof_words import Shown, proof_words
from timetrial.report.rendering import to_text
from timetrial.report.table import CasesTable
from timetrial.results.results import Results

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


WITHIN = Comparison(tensor="fc1.weight", measure="relative_l2", error=1e-7, tolerance=2e-5, passed=True)
BEYOND = Comparison(tensor="conv1.weight", measure="relative_l2", error=0.5, tolerance=2e-5, passed=False)


def said_of_proof(results: Results, name: str) -> list[str]:
    """The lines of a row's proof, the status first."""
    (row,) = [row for row in results.rows if row.case.backend == name]
    facts = list(CaseDetail(row).facts())
    start = next(place for place, (fact, _) in enumerate(facts) if fact == "proof")
    return [facts[start][1], *(value for fact, value in facts[start + 1 :] if not fact)]


@pytest.mark.parametrize("turned", [[], ["plain step 3: relu1 of image 4"]])
def test_a_proof_with_a_part_that_failed_is_nowhere_called_passed(
    turned: list[str], measure: Callable[..., Results], fake: FakeEngine
) -> None:
    notes = ["flips"] if turned else []
    fake.parity = {"fast": Parity(status="failed", judge="reference", comparisons=[WITHIN, BEYOND])}
    results = measure("backend=slow,fast")
    for file in results.path.glob("proof/*/record.json"):  # as a tool that is wrong might have written it
        text = file.read_text("utf-8").replace('"status": "failed"', '"status": "passed"')
        record = json.loads(text)
        if record["parity"]["comparisons"]:
            record["parity"] |= {"notes": notes, "turned": turned}
        file.write_text(json.dumps(record), encoding="utf-8")
    again = Results(results.path)
    status, *parts = said_of_proof(again, "fast")
    assert status.startswith("failed against reference")
    assert "conv1.weight is beyond its tolerance, though the record says that the proof passed" in status
    assert parts[0] == "conv1.weight: 0.5 of 2e-05 allowed  FAILED"
    assert "NOT equal: fast" in to_text(again, width=200)
    words, style = styles(again)["fast"]
    assert (style, UNPROVEN_WORD in words) == ("yellow", True)
    assert again.to_json()["cases"][1]["parity"]["status"] == "failed"
    assert again.to_json()["cases"][1]["percent_of_peak"] is None
    assert said_of_proof(again, "slow")[0].startswith("passed against reference")


def test_what_older_records_allowed_is_called_so(measure: Callable[..., Results], fake: FakeEngine) -> None:
    fake.parity = {"fast": Parity(status="passed", notes=["ties"], comparisons=[WITHIN, BEYOND])}
    status, *parts = said_of_proof(measure("backend=slow,fast"), "fast")
    assert status.startswith("passed")
    assert parts[0] == "conv1.weight: 0.5 of 2e-05 allowed  allowed: ties"
    assert not any("FAILED" in part for part in parts)


def test_a_proof_that_timed_launches_did_not_repeat(
    measure: Callable[..., Results], fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "behind the timed part: gradient fc1.weight: relative L2 error 0.5, tolerance 2e-05"
    results = measure("backend=slow,fast")
    for launch in results.launches:
        if launch.record.purpose == "speed" and launch.record.case == results.rows[1].case.id:
            record = launch.record.model_copy(update={"outcome": "wrong", "reason": words})
            (launch.folder / "record.json").write_text(record.model_dump_json(), encoding="utf-8")
    status, *_ = said_of_proof(Results(results.path), "fast")
    assert status.startswith("passed against reference")
    assert f"but a timed launch did not repeat it: {words}" in status


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("passed", "passed", "passed"),
        ("passed", "failed", "failed"),
        ("failed", "unproven", "failed"),
        ("passed", "unproven", "unproven"),
        ("unproven", "passed", "unproven"),
    ],
)
def test_two_proofs_are_one_only_if_both_passed(first: Any, second: Any, status: str) -> None:
    both = [Parity(status=one, max_error=None if one == "unproven" else 1e-6) for one in (first, second)]
    assert merged(*both).status == status
