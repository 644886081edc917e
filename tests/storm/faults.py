"""What may happen to a launch from outside, at any moment. Each fault is a function of a launch's folder and
the processes in it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from timetrial.processes.environment import environment_of

Fault = Callable[[Path, random.Random], None]


def processes_of(folder: Path) -> list[int]:
    """Supervisors, contenders and what they started, of all launches in the folder; the eldest first."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if environment_of(int(entry)).get("TMPDIR", "").startswith(f"{folder}/"):
                    found.append(int(entry))
    return sorted(found)


def _signal(number: int, place: int) -> Fault:
    def fault(folder: Path, rng: random.Random) -> None:
        own = processes_of(folder)
        if own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(own[min(place, len(own) - 1)], number)

    return fault


def _stop(folder: Path, rng: random.Random) -> None:
    """And go on a moment later: whoever stops it is not whoever lets it go."""
    own = processes_of(folder)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(rng.uniform(0.01, 0.2))


def _file(name: str, change: Callable[[Path, random.Random], None]) -> Fault:
    def fault(folder: Path, rng: random.Random) -> None:
        with contextlib.suppress(OSError):
            change(folder / name, rng)

    return fault


def _truncate(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(max(1, path.stat().st_size)))


def _overwrite(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.seek(rng.randrange(max(1, path.stat().st_size)))
        file.write(rng.randbytes(16))


def _append(path: Path, rng: random.Random) -> None:
    with path.open("ab") as file:
        file.write(rng.randbytes(8))


def _remove(path: Path, rng: random.Random) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _fifo(path: Path, rng: random.Random) -> None:
    _remove(path, rng)
    os.mkfifo(path)


def _plant(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice([b"{}", b"", b"\xff\xfe", b'{"schema_version": 1}', b"[" * 10_000]))


def _folder(path: Path, rng: random.Random) -> None:
    (path / "deep" / "er").mkdir(parents=True)


_SAMPLES = ("stamps.bin", "losses.bin")
_LEFT = (*_SAMPLES, "stdout.txt", "stderr.txt", "job.json", "record.json", "home", "tmp", ".")
FAULTS: dict[str, Fault] = {
    **{
        f"{number.name} to {who}": _signal(number, place)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGHUP)
        for place, who in enumerate(("the supervisor", "the contender"))
    },
    "stopped for a moment": _stop,
    **{f"{name} cut": _file(name, _truncate) for name in _SAMPLES},
    **{f"{name} overwritten": _file(name, _overwrite) for name in _SAMPLES},
    **{f"{name} longer": _file(name, _append) for name in (*_SAMPLES, "stdout.txt")},
    **{f"{name} gone": _file(name, _remove) for name in _LEFT},
    **{f"{name} is a FIFO": _file(name, _fifo) for name in _LEFT[:-1]},
    "record.json planted": _file("record.json", _plant),
    "record.json is a folder": _file("record.json", _folder),
}


class Soon:
    """Does it to a launch that is about to run, so many seconds after its supervisor has started."""

    def __init__(self, fault: Fault, folder: Path, rng: random.Random, longest_s: float):
        self._rng = rng
        self._fault = fault
        self._folder = folder
        self._delay_s = rng.uniform(0.0, longest_s)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._do)

    def _do(self) -> None:
        while not processes_of(self._folder):
            if self._over.wait(0.002):
                return
        if not self._over.wait(self._delay_s):
            self._fault(self._folder, self._rng)

    def __enter__(self) -> Soon:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
