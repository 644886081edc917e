"""What a launch begins with: the recorder's file, and the phases up to `ready`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from timetrial.core.recorder import create_recorder_file
from timetrial.records.model import Phase


@contextlib.contextmanager
def recorder_file() -> Iterator[int]:
    """Its descriptor, closed behind the launch."""
    fd = create_recorder_file()
    try:
        yield fd
    finally:
        os.close(fd)


def phases(started_ns: int, said: Sequence[Mapping[str, Any]]) -> list[Phase]:
    """The supervisor's time of the start first, then the contender's own."""
    return [
        Phase(name="exec", ns=started_ns),
        *(Phase(name=str(p["name"]), ns=int(p["ns"]), rss_bytes=p.get("rss_bytes")) for p in said),
    ]
