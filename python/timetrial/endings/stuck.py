"""Where a contender that does not go on stands: its threads by the kernel, and of Python by its own word."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from timetrial.core.observer import Thread
from timetrial.records.model import StuckThread

MOST_THREADS = 64
PATIENCE_S = 2.0  # for Python's stacks
TICK_S = 0.02
# Whoever runs in Python answers it with the stacks of its threads, on standard error (runtime/stacks.py).
STACKS_SIGNAL = signal.SIGRTMAX - 1
_FUNCTION = re.compile(r"\[<[0-9a-fx]+>\] ([^+\s]+)")
# Of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl): those in which threads wait.
_CALLS = {
    0: "read", 1: "write", 7: "poll", 23: "select", 34: "pause", 35: "nanosleep", 45: "recvfrom",
    47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 202: "futex", 230: "clock_nanosleep",
    232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
}  # fmt: skip


def stuck_threads(threads: Iterable[Thread], root: Path = Path("/")) -> list[StuckThread]:
    """What the kernel tells of each; stacks are for root alone. Those that are gone are left out."""
    found = []
    for one in list(threads)[:MOST_THREADS]:
        folder = root / f"proc/{one.pid}/task/{one.tid}"
        state = _text(folder / "stat").rpartition(")")[2].split()[:1]
        if not state:
            continue
        waits_in = _text(folder / "wchan").strip("0")
        found.append(
            StuckThread(
                tid=one.tid,
                name=one.name,
                state=state[0],
                waits_in=waits_in or None,
                system_call=_system_call(_text(folder / "syscall")),
                kernel_stack=_FUNCTION.findall(_text(folder / "stack")),
            )
        )
    return found


def ask_for_stacks(pid: int, stderr: Path) -> bool:
    """Has a program in Python write the stacks of its threads to standard error, this file. False: it is
    none, or it said nothing."""
    if not _answers(pid):
        return False
    before = _size(stderr)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, STACKS_SIGNAL)
    deadline, seen = time.monotonic() + PATIENCE_S, before
    while time.monotonic() < deadline:
        time.sleep(TICK_S)
        size = _size(stderr)
        if size > before and size == seen:
            return True
        seen = size
    return seen > before


def words_of(threads: Iterable[StuckThread]) -> str:
    """'2 threads wait in futex, 1 runs'; '': nothing is known."""
    places: dict[str, int] = {}
    for one in threads:
        where = one.system_call or one.waits_in
        place = "run" if one.state == "R" else (f"wait in {where}" if where else f"are in state {one.state}")
        places[place] = places.get(place, 0) + 1
    return ", ".join(f"{count} thread{'s' * (count > 1)} {place}" for place, count in places.items())


def _answers(pid: int) -> bool:
    """Whether it has a handler: others would be ended by the signal."""
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", _text(Path(f"/proc/{pid}/status")), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (STACKS_SIGNAL - 1) & 1)


def _system_call(text: str) -> str | None:
    """'futex' of '202 0x7f...'; None: it is in none, or the kernel does not say."""
    word = text.split()[:1]
    if not word or not word[0].isdecimal():
        return None
    known = _CALLS if os.uname().machine == "x86_64" else {}
    return known.get(int(word[0]), f"system call {word[0]}")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
