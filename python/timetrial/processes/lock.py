"""One measurement at a time per machine: two at once would measure each other."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType

from timetrial.errors import InputError, MeasurementError
from timetrial.stopping import shielded

# The same file for every user of the machine, so it cannot follow anyone's TMPDIR.
DEFAULT_PATH = Path("/tmp/timetrial.lock")
# For tests, and for containers that pin their measurements to cores of their own.
PATH_VARIABLE = "TIMETRIAL_LOCK"
_CONTENDER = Path(__file__).resolve().parents[1] / "runtime" / "main.py"  # the program of our own contenders


def lock_path() -> Path:
    """The machine-wide lock file, or the one that TIMETRIAL_LOCK names."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


class MeasurementLock:
    """Held while something is measured. The kernel releases it with its holder, however that one ends.

    Raises InputError if someone else holds it, naming the process, its command and since when.
    """

    def __init__(self, path: Path | None = None):
        self.path = path or lock_path()
        self._fd: int | None = None

    def __enter__(self) -> MeasurementLock:
        program = getattr(sys.modules.get("__main__"), "__file__", None) or ""
        if Path(program).resolve() == _CONTENDER:
            raise InputError(
                "a contender began to measure, because a file that it imports does so as it is imported. Put "
                'the call there (tt.race, tt.run ...) below `if __name__ == "__main__":`'
            )
        fd = _open(self.path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe(os.pread(fd, 65536, 0))
            os.close(fd)
            raise InputError(
                f"another measurement is running on this machine: {holder}. Two at once would measure each "
                f"other: wait for it, or end it (lock file {self.path})"
            ) from None
        except OSError as error:
            os.close(fd)
            raise MeasurementError(f"cannot lock {self.path}: {error.strerror}") from error
        who = {"pid": os.getpid(), "command": " ".join(sys.argv)[:500], "since": time.strftime("%F %T %z")}
        with contextlib.suppress(OSError):  # a full disk costs only the words of a later complaint
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(who).encode(), 0)
        self._fd = fd
        return self

    @shielded
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def _open(path: Path) -> int:
    # First without O_CREAT: in a sticky folder the kernel refuses O_CREAT on another user's file.
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise MeasurementError(_cannot_open(path, error)) from error
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise MeasurementError(_cannot_open(path, error)) from error
    with contextlib.suppress(OSError):
        os.fchmod(fd, 0o666)  # whatever the umask: the next user must be able to lock it
    return fd


def _cannot_open(path: Path, error: OSError) -> str:
    return (
        f"cannot open the lock file {path}: {error.strerror}. Make it writable, or set {PATH_VARIABLE} to a "
        "file that everyone who measures on this machine can write"
    )


def _describe(content: bytes) -> str:
    try:
        who = json.loads(content)
        return f"process {who['pid']} ({who['command']}), since {who['since']}"
    except (ValueError, KeyError, TypeError):
        return "its holder has not said who it is yet"
