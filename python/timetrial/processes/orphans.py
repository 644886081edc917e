"""The second safety net under a launch: what its supervisor can no longer end, because somebody ended *it*.

A supervisor is the subreaper of its contender: whatever detaches itself becomes its child, and ends with the
launch. When it is killed itself, the kernel ends the contender (PR_SET_PDEATHSIG), and what had detached
itself falls to the next subreaper above. That is this process while a launch runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from timetrial.processes.environment import environment_of

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_libc = ctypes.CDLL(None, use_errno=True)
_lock = threading.Lock()
_launches = 0
_was_subreaper = False


@contextlib.contextmanager
def subreaper() -> Iterator[None]:
    """This process inherits what detaches itself below it, for as long as any launch runs; then as before."""
    global _launches, _was_subreaper
    with _lock:
        if _launches == 0:
            _was_subreaper = _is_subreaper()
            _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _launches += 1
    try:
        yield
    finally:
        with _lock:
            _launches -= 1
            if _launches == 0 and not _was_subreaper:
                _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    return bool(flag.value)


def end_orphans(folder: Path, contender: int | None) -> None:
    """Ends every process of a launch that this process has inherited, known by the folder in its environment,
    and all below them; the `contender` itself has been ended by the kernel."""
    if contender is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(contender, 0)
    for _ in range(100):  # whoever forks faster than that is left to the kernel's limits
        own = [pid for pid in _children(os.getpid()) if _belongs_to(pid, folder)]
        if not own:
            return
        for pid in own:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def _belongs_to(pid: int, folder: Path) -> bool:
    try:
        return environment_of(pid).get("TMPDIR") == str(folder / "tmp")
    except OSError:
        return False
