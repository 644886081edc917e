"""What shows how a launch ended that is not ok, for people."""

from __future__ import annotations

from collections.abc import Iterator

from timetrial.endings.stuck import words_of
from timetrial.records.model import Ending

MOST_LINES = 30  # of a stack

_CAUSES = {
    "refused": "its allocator was refused memory",
    "kernel": "the kernel killed it: the machine had no memory left",
    "cgroup": "the kernel killed it: a control group had no memory left",
    "watchdog": "the supervisor saw too much memory and ended it",
}


def ending_lines(ending: Ending) -> Iterator[str]:
    """One fact a line."""
    if ending.cause:
        held = f", at {ending.held_bytes / 2**20:.1f} MB" if ending.held_bytes else ""
        yield f"cause: {_CAUSES[ending.cause]}{held}"
    if ending.caps:
        yield f"caps: {ending.caps}"
    if ending.boundary:
        yield f"came to: {ending.boundary}"
    if ending.threads:
        yield f"stood: {words_of(ending.threads)}"
    for one in ending.threads:
        where = " < ".join(one.kernel_stack[:6]) or one.waits_in or one.system_call or "-"
        yield f"  {one.tid} {one.name} [{one.state}]: {where}"
    yield from ending.stack[:MOST_LINES]
