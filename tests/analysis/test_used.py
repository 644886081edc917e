"""What is held in shared memory is in no column unless somebody asks: then it is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timetrial.analysis.used import lean_by_sharing
from timetrial.cautions import advice_for
from timetrial.records.model import Memory, MemoryAt

MB = 1 << 20


def launch(shared_mb: int | None, private_mb: int) -> Any:
    at = MemoryAt(
        phase="steady",
        resident_bytes=900 * MB,
        anonymous_bytes=private_mb * MB,
        shared_bytes=None if shared_mb is None else shared_mb * MB,
    )
    memory = Memory(steady_anonymous_peak=private_mb * MB, phases=[at])
    return SimpleNamespace(record=SimpleNamespace(memory=memory))


def test_who_keeps_tensors_in_shared_memory_does_not_look_lean() -> None:
    [said] = lean_by_sharing([launch(0, 300), launch(64, 300)])
    assert said == (
        "held 64 MB of shared memory beside 300 MB of private memory: the column `memory` leaves it out"
    )
    assert "--columns shared" in advice_for(said)


@pytest.mark.parametrize(
    "launches",
    [
        [],
        [launch(None, 300)],  # an older record
        [launch(2, 5)],  # a recorder's window, a semaphore
        [launch(60, 900)],  # little beside what is private
    ],
)
def test_little_is_not_worth_a_word(launches: list[Any]) -> None:
    assert lean_by_sharing(launches) == []
