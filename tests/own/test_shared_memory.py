"""A step that keeps tensors in shared memory: the column `memory` does not have them, and the row says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from launching import words

from timetrial.analysis.used import lean_by_sharing
from timetrial.records.model import LaunchRecord

ROOM = """
import mmap
SIZE = 48 << 20
def make():
    room = mmap.mmap(-1, SIZE, flags=mmap.{flags} | mmap.MAP_ANONYMOUS)
    room.write(bytes([1]) * SIZE)
    def step():
        return float(room[0])
    return step
"""


def said_of(record: LaunchRecord) -> list[str]:
    assert record.outcome == "ok", words(record)
    launches: list[Any] = [SimpleNamespace(record=record)]
    return lean_by_sharing(launches)


@pytest.mark.attempt
def test_tensors_in_shared_memory_do_not_make_it_lean(launch: Callable[..., LaunchRecord]) -> None:
    [said] = said_of(launch(ROOM.format(flags="MAP_SHARED")))
    assert re.match("held (48|49) MB of shared memory beside ", said), "and perhaps the recorder's window"


def test_the_same_in_private_memory_is_counted_as_such(launch: Callable[..., LaunchRecord]) -> None:
    record = launch(ROOM.format(flags="MAP_PRIVATE"))
    assert said_of(record) == []
    assert (record.memory.held or 0) >= 48 << 20
