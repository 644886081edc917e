"""Import, build and first step: of a launch, and of a case."""

from __future__ import annotations

import numpy as np
import pytest
from test_steps import launch

from timetrial.analysis.phases import Phases, phases_of, typical, typical_start
from timetrial.analysis.steps import steps_of
from timetrial.records.model import Phase

BORDERS = [
    Phase(name="exec", ns=1_000_000_000),
    Phase(name="start", ns=1_500_000_000),
    Phase(name="import", ns=3_500_000_000),
    Phase(name="build", ns=3_750_000_000),
]


def test_of_a_timed_launch() -> None:
    record, stamps, losses = launch([("first", [900_000_000]), ("warmup", [50, 50]), ("steady", [10])])
    record = record.model_copy(update={"phases": BORDERS})
    assert phases_of(record, steps_of(record, stamps, losses)) == Phases(2.0, 0.25, 0.9)


def test_the_cold_part_ends_where_the_steady_steps_begin() -> None:
    segments = [("first", [900_000_000]), ("warmup", [50, 50]), ("steady", [10])]
    record, stamps, losses = launch(segments)  # each segment of this helper begins at 1 ms
    record = record.model_copy(update={"phases": [Phase(name="exec", ns=400_000)]})
    steps = steps_of(record, stamps, losses)
    found = phases_of(record, steps, np.array([False, False, True, True]))
    assert found.to_steady_s == pytest.approx(50e-9)
    assert found.before_steady_s == pytest.approx(0.6e-3 + 50e-9)
    waited = phases_of(
        record.model_copy(update={"waited_ns": 20}), steps, np.array([False, False, True, True])
    )
    assert waited.to_steady_s == pytest.approx(30e-9)
    assert waited.before_steady_s == pytest.approx(0.6e-3 + 30e-9)
    nothing_steady = phases_of(record, steps, None)
    assert nothing_steady.to_steady_s is None
    assert nothing_steady.before_steady_s is None


def test_of_a_proof_it_is_the_first_call() -> None:
    record, stamps, losses = launch([("train", [700_000_000, 10])])
    record = record.model_copy(update={"purpose": "proof", "phases": BORDERS, "first_call_ns": 3_000_000_000})
    assert phases_of(record, steps_of(record, stamps, losses)).first_step_s == 3.0


@pytest.mark.parametrize("reached", [0, 2, 3])
def test_what_was_not_reached_is_not_known(reached: int) -> None:
    record, stamps, losses = launch([])
    record = record.model_copy(update={"phases": BORDERS[:reached]})
    found = phases_of(record, steps_of(record, stamps, losses))
    assert found == Phases(2.0 if reached == 3 else None, None, None)


def test_of_a_case_it_is_the_median_of_what_is_known() -> None:
    assert typical([Phases(1.0, None, 5.0), Phases(3.0, None, None), Phases(9.0, 2.0, 7.0)]) == Phases(
        3, 2, 6
    )
    assert typical([]) == Phases()


def test_a_start_beside_others_does_not_count_where_there_is_one_alone() -> None:
    launches = [(2, Phases(9.0)), (1, Phases(2.0)), (2, Phases(8.0)), (1, Phases(3.0))]
    assert typical_start(launches) == Phases(2.5)
    assert typical_start(launches[:1]) == Phases(9.0)
    assert typical_start([]) == Phases()
