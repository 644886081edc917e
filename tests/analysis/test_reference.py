from __future__ import annotations

from dataclasses import replace
from typing import Any

from timetrial.analysis.summary import choose_reference, summarize
from timetrial.records.model import CaseRecord, ExperimentRecord
from timetrial.records.reference import reference_of
from timetrial.statistics.intervals import positive_location


def case(backend: str, *, unavailable: str | None = None, **settings: str) -> CaseRecord:
    axes: dict[str, Any] = {"backend": backend, "threads": None, **settings}
    return CaseRecord(
        id=f"{backend}{''.join(settings.values())}", axes=axes, backend=backend, network="mlp",
        dataset="digits28", batch_size=64, optimizer={}, task="train", settings=settings,
        unavailable=unavailable,
    )  # fmt: skip


def experiment(*cases: CaseRecord, reference: dict[str, Any] | None = None, **spec: Any) -> ExperimentRecord:
    return ExperimentRecord(
        id="x", name="x", seed=1, created_at="", timetrial_version="", again="", spec=spec,
        cases=list(cases), reference=reference, launches=1, learning_seeds=0,
    )  # fmt: skip


def compared(fixed: dict[str, Any], *facts: dict[str, Any]) -> list[int | None]:
    return [reference_of(index, facts, fixed) for index in range(len(facts))]


def test_a_reference_fixes_only_what_it_names() -> None:
    facts = [{"backend": backend, "threads": threads} for backend in ("p", "e") for threads in (1, 2)]
    assert compared({"backend": "p"}, *facts) == [0, 1, 0, 1]
    assert compared({"threads": 1}, *facts) == [0, 0, 2, 2]
    assert compared({"backend": "p", "threads": "1"}, *facts) == [0, 0, 0, 0]


def test_axes_that_only_one_has_do_not_separate() -> None:
    facts = [
        {"backend": "p", "threads": 1},
        {"backend": "c", "threads": 1, "blas.library": "blis"},
        {"backend": "c", "threads": 2, "blas.library": "blis"},
    ]
    assert compared({"backend": "p"}, *facts) == [0, 0, None]


def test_who_sets_nothing_is_compared_with_who_sets_nothing() -> None:
    facts = [{"backend": backend, "threads": threads} for threads in (1, 2, None) for backend in ("p", "t")]
    assert compared({"backend": "p"}, *facts) == [0, 0, 2, 2, 4, 4]
    assert compared({"backend": "p"}, *facts[:4], {"backend": "t", "threads": None}) == [0, 0, 2, 2, 0]


def test_repetitions_are_compared_with_the_first() -> None:
    facts = [{"backend": "e", "repeat": repeat} for repeat in (1, 2, 3)]
    assert compared({"backend": "e"}, *facts) == [0, 0, 0]


def test_the_first_ok_contender_steps_in_and_the_reader_is_told() -> None:
    record = experiment(
        case("pytorch", threads="1", unavailable="pytorch needs the module torch: pip install torch"),
        case("eigen", threads="1"),
        case("null", threads="1"),
        reference={"backend": "pytorch"},
        contender=[{"backend": ["pytorch", "eigen", "null"]}],
    )
    rows = summarize(record, []).rows
    assert choose_reference(record, rows) == (None, [])  # nothing is ok yet
    measured = [
        rows[0],
        *(replace(row, outcome="ok", step_time_ns=positive_location([1.0])) for row in rows[1:]),
    ]
    fixed, warnings = choose_reference(record, measured)
    assert fixed == {"backend": "eigen"}
    assert "pytorch is unavailable" in warnings[0]
    assert "against eigen" in warnings[0]
