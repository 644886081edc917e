"""`tt.settings(threads=1)`: settings of the libraries of this process, for a while."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import ContextDecorator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from timetrial.cases.settings import SETTINGS
from timetrial.control.cpus import allowed_cpus, format_cpus, parse_cpus
from timetrial.core import Libraries, Library, Observer
from timetrial.core.cpu import FLUSHED, float_mode, set_float_mode
from timetrial.errors import InputError, nearest
from timetrial.in_process.contradictions import named
from timetrial.in_process.held import Hold, Knob
from timetrial.records.model import SettingStatus

if TYPE_CHECKING:
    from rich.console import RenderableType

HERE = ("threads", "affinity", "flush_to_zero")  # that can change while a process lives
XLA = "XLA's threads are as many as the processors it was started on (taskset); affinity= holds them to fewer"
NUMBA = "numba's threads are told by numba.set_num_threads(), in the thread that calls it"
# Pools that no library's function reaches, by a part of the file's name: how they are told, and when.
POOLS = {
    "tensorflow": "TensorFlow's threads are told by tf.config.threading, before its first operation",
    "xla": XLA,
    "jax": XLA,
    "mxnet": "MXNet's engine is told by MXNET_CPU_WORKER_NTHREADS, when the process starts",
}


class SettingsWarning(UserWarning):
    """Something that was asked of this process did not reach everything in it."""


@dataclass(frozen=True)
class Reading:
    """One thing that was told, and what it answered."""

    setting: str  # threads, affinity, flush_to_zero
    library: str  # what was told: 'OpenBLAS (libopenblas.so.0)', 'this process', 'this thread'
    asked: str  # the value that was asked
    effective: str | None  # as it was read back; None: it does not tell
    status: SettingStatus  # applied, ignored, unsupported or unverifiable
    how_read: str  # the function that told, or why nothing was told


class Applied:
    """What is in force, as it was read back when the block was entered; shown as a table."""

    def __init__(self, readings: list[Reading], unreached: list[str]):
        self.readings = readings  # one for each thing that was told
        self.unreached = unreached  # what could not be told, or did not heed it: one sentence each

    def table(self) -> RenderableType:
        """For rich."""
        from timetrial.report.libraries import applied_table

        return applied_table(self)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


class Settings(ContextDecorator):
    """What `settings()` gives: enter it, or decorate a function with it; again and nested, if you like."""

    def __init__(self, threads: int | None, affinity: frozenset[int] | None, flush: bool | None):
        self._threads, self._affinity, self._flush = threads, affinity, flush
        self._held: dict[int, list[Hold]] = {}  # by the thread that entered

    def __enter__(self) -> Applied:
        wanted: list[tuple[Knob, Any]] = []
        if self._threads is not None:
            wanted += [(one.knob(), self._threads) for one in _process.threaded() if one.can_tell]
        if self._affinity is not None:
            wanted.append((_affinity_knob(), dict.fromkeys(_tasks(), self._affinity)))
        if self._flush is not None:
            wanted.append((_flush_knob(), FLUSHED if self._flush else 0))
        hold = Hold(wanted)
        try:
            applied = self._read_back()
            for words in applied.unreached:
                warnings.warn(words, SettingsWarning, stacklevel=2)
        except BaseException:  # warnings may be errors
            hold.release()
            raise
        self._held.setdefault(threading.get_ident(), []).append(hold)
        _entered.append((threading.get_ident(), self))
        return applied

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own = self._held.get(threading.get_ident())
        elsewhere = not own
        _entered.remove(next(one for one in reversed(_entered) if one[1] is self))
        (own or next(holds for holds in reversed(self._held.values()) if holds)).pop().release()
        if elsewhere and error is None:
            raise InputError(
                "tt.settings was entered in one thread and left in another: numbers that a library keeps for "
                "each thread (OpenMP's, PyTorch's) stay in the first. Leave it in the thread that entered it"
            )

    def asked(self) -> dict[str, Any]:
        """By name, with values as a contender's settings have them."""
        flush = None if self._flush is None else "on" if self._flush else "off"
        affinity = None if self._affinity is None else format_cpus(self._affinity)
        every = {"threads": self._threads, "affinity": affinity, "flush_to_zero": flush}
        return {name: value for name, value in every.items() if value is not None}

    def _recreate_cm(self) -> Settings:
        """For ContextDecorator: each call of a decorated function holds its own."""
        return Settings(self._threads, self._affinity, self._flush)

    def _read_back(self) -> Applied:
        readings, unreached = [], []
        if self._threads is not None:
            readings = [one.reading(self._threads) for one in _process.threaded()]
            unreached = [
                f"threads={self._threads} did not reach {one.library}: {one.how_read}"
                for one in readings
                if one.status == "ignored"
            ]
            unreached += [f"threads={self._threads} did not reach {words}" for words in _process.pools()]
        if self._affinity is not None:
            readings.append(
                _reading("affinity", "this process", format_cpus(self._affinity), _affinity_words())
            )
        if self._flush is not None:
            mode = {0: "off", FLUSHED: "on"}.get(float_mode(), "half")
            readings.append(_reading("flush_to_zero", "this thread", "on" if self._flush else "off", mode))
        return Applied(readings, unreached)


_entered: list[tuple[int, Settings]] = []  # blocks under way, with the thread that entered


def held() -> dict[str, Any]:
    """What the blocks around the caller hold, as settings of a contender: {"threads": 1}."""
    own = [one.asked() for thread, one in _entered if thread == threading.get_ident()]
    return {name: value for asked in own for name, value in asked.items()}


def settings(
    *,
    threads: int | None = None,
    affinity: str | None = None,
    flush_to_zero: bool | None = None,
    oversubscribe: bool = False,
    **others: object,
) -> Settings:
    """Settings of this process while a block runs, or a function that it decorates:

        with tt.settings(threads=1) as applied:
            step()

    What was there before comes back behind it, also after an exception, and where several are nested or come
    from several threads. `threads`: of every BLAS, OpenMP runtime and PyTorch that is loaded now
    (`tt.libraries()`); load them first. OpenMP and PyTorch keep a number for each thread: it is the calling
    one's. `affinity`: '0', '0-1' or '0+2', for all threads there are. `flush_to_zero`: whether subnormal
    numbers count as zero in the calling thread; threads that it starts inherit it.

    Races, runs and searches that begin in the block have the same settings, unless they are given others.

    What does not heed it or cannot be told is named by a SettingsWarning, and in `applied`, which has what
    each library answered. InputError: more threads than processors (`oversubscribe=True` allows it),
    processors that this process may not use, or a setting that acts only when a process starts.
    """
    for name in others:
        _refuse(name)
    if threads is None and affinity is None and flush_to_zero is None:
        raise InputError(f"tt.settings() was asked for nothing: expected {', '.join(HERE)}")
    cpus = None if affinity is None else parse_cpus(affinity)
    if cpus is not None and (outside := cpus - allowed_cpus()):
        raise InputError(
            f"affinity={affinity!r}: this process may not use core {format_cpus(outside)}, only "
            f"{format_cpus(allowed_cpus())}"
        )
    if threads is not None:
        _check_threads(threads, len(cpus or allowed_cpus()), oversubscribe=oversubscribe)
    if flush_to_zero is not None and not isinstance(flush_to_zero, bool):
        raise InputError(f"flush_to_zero={flush_to_zero!r}: expected True or False")
    return Settings(threads, cpus, flush_to_zero)


def _check_threads(threads: object, processors: int, *, oversubscribe: bool) -> None:
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InputError(f"threads={threads!r}: expected a whole number from 1 to {processors}")
    if threads > processors and not oversubscribe:
        raise InputError(
            f"threads={threads}: there {'are' if processors > 1 else 'is'} {processors} "
            f"processor{'s' if processors > 1 else ''} for them; oversubscribe=True allows it"
        )


def _refuse(name: str) -> None:
    if name not in SETTINGS:
        raise InputError(f"tt.settings has no {name!r}.{nearest(name, HERE)}")
    raise InputError(
        f"{name} acts only when a process starts: tt.settings can change {', '.join(HERE)}. "
        f"Start the process with it; a result's row.settings.environment() has the variables"
    )


class _Threads:
    """The number of threads of one library. What does not change is asked once: entering a block is quick."""

    def __init__(self, library: Library):
        self._library = library
        self._facts = library.facts()
        self._name = named(self._facts)
        self.can_tell = self._facts.threads is not None

    def knob(self) -> Knob:
        one = self._library
        thread = threading.get_ident() if one.of_calling_thread else 0
        return Knob((one.path, one.kind, thread), lambda: one.threads, one.set_threads)

    def reading(self, asked: int) -> Reading:
        threads = self._library.threads if self.can_tell else None
        status, how = self._status(asked, threads)
        return Reading(
            "threads", self._name, str(asked), None if threads is None else str(threads), status, how
        )

    def _status(self, asked: int, threads: int | None) -> tuple[SettingStatus, str]:
        one = self._facts
        if one.threading == "none" and asked > 1:
            return "ignored", one.limits
        if threads is None:
            return "unsupported", one.limits
        if threads != asked:
            return "ignored", f"{one.threads_getter} answers {threads}. {one.limits}".rstrip(". ")
        return "applied", one.threads_getter


class _Process:
    """The libraries of this process, kept while nothing is loaded."""

    def __init__(self) -> None:
        self._libraries = Libraries()
        self._lock = threading.Lock()
        self._found: list[Library] | None = None
        self._threaded: list[_Threads] = []
        self._pools: list[str] = []

    def threaded(self) -> list[_Threads]:
        """Each library, in the order in which they are to be told."""
        with self._lock:
            found = self._libraries.loaded()
            if found is not self._found:
                self._found, self._threaded = found, [_Threads(one) for one in found]
                files = [one.path for one in Observer(os.getpid()).libraries() if one.kind == "framework"]
                names = " ".join(Path(path).name.lower() for path in files)
                self._pools = list(dict.fromkeys(words for part, words in POOLS.items() if part in names))
            return self._threaded

    def pools(self) -> list[str]:
        """Of frameworks whose threads no function reaches: how they are told."""
        return [*self._pools, *([NUMBA] if "numba" in sys.modules else [])]


_process = _Process()


def _reading(setting: str, who: str, asked: str, effective: str) -> Reading:
    how = {"affinity": "sched_getaffinity() of every thread", "flush_to_zero": "MXCSR"}[setting]
    return Reading(setting, who, asked, effective, "applied" if asked == effective else "ignored", how)


def _tasks() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc/self/task"))  # the main thread is the first


def _read_masks() -> dict[int, frozenset[int]]:
    masks = {}
    for task in _tasks():
        try:
            masks[task] = frozenset(os.sched_getaffinity(task))
        except ProcessLookupError:  # it has ended
            continue
    return masks


def _write_masks(masks: dict[int, frozenset[int]]) -> None:
    """Threads that came in between, and the one of a forked child, have what the first thread had."""
    first = next(iter(masks.values()))
    for task in _tasks():
        try:
            os.sched_setaffinity(task, masks.get(task, first))
        except ProcessLookupError:
            continue


def _affinity_knob() -> Knob:
    return Knob("affinity", _read_masks, _write_masks)


def _affinity_words() -> str:
    return format_cpus(frozenset[int]().union(*_read_masks().values()))


def _flush_knob() -> Knob:
    return Knob(("flush_to_zero", threading.get_ident()), float_mode, set_float_mode)
