"""What a launch begins with: the recorder's file, and the phases up to `ready`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from timetrial.core.recorder import create_recorder_file
from timetrial.processes.events import SaidPhase, broken
from timetrial.records.model import Phase

PHASES = ["start", "import", "build"]


@contextlib.contextmanager
def recorder_file() -> Iterator[int]:
    """Its descriptor, closed behind the launch."""
    fd = create_recorder_file()
    try:
        yield fd
    finally:
        os.close(fd)


def phases(started_ns: int, said: Sequence[SaidPhase], now_ns: int) -> list[Phase]:
    """The supervisor's time of the start first, then the contender's own. LaunchError: its phases cannot have
    come one after the other since."""
    borders = [started_ns, *(one.ns for one in said), now_ns]
    if any(then > later for then, later in pairwise(borders)) or [one.name for one in said] != PHASES:
        names = ", ".join(f"{one.name} at {one.ns}" for one in said) or "none"
        raise broken(
            f"started at {started_ns}, it says at {now_ns} that its phases ended: {names}; expected "
            f"{', '.join(PHASES)}, in this order"
        )
    return [
        Phase(name="exec", ns=started_ns),
        *(
            Phase(name=one.name, ns=one.ns, rss_bytes=one.rss_bytes, mapped_bytes=one.mapped_bytes)
            for one in said
        ),
    ]
