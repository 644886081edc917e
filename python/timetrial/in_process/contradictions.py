"""What does not go together in this process, in words: found before a measurement suffers from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from timetrial.control.contradictions import two_runtimes
from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.openmp import BINDING
from timetrial.core import LibraryFacts
from timetrial.core.cpu import openblas_core_missed, openblas_core_problem

# Variables that bind the thread that loads OpenMP, and so whatever it starts later.
# Variables by which a library of such threads is not told.
DEAF = {
    ("OpenBLAS", "OpenMP"): ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS"),
    ("OpenBLAS", "none"): ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    ("BLIS", "none"): ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
}


def contradictions_of(libraries: Sequence[LibraryFacts]) -> Iterator[str]:
    """One sentence each."""
    allowed = os.sched_getaffinity(0)
    yield from two_runtimes([f"{one.vendor} {one.path}" for one in libraries if one.kind == "openmp"])
    yield from _bound(allowed)
    for one in libraries:
        yield from _not_heard(one)
        yield from _too_many(one, len(allowed))
        yield from _kernels(one)


def named(one: LibraryFacts) -> str:
    """'OpenBLAS (libopenblas.so.0)'."""
    return f"{one.vendor or 'a BLAS of no known vendor'} ({Path(one.path).name})"


def _bound(allowed: set[int]) -> Iterator[str]:
    """A thread that is bound more narrowly than others of its process, by a variable of OpenMP."""
    variables = [name for name in BINDING if os.environ.get(name, "").lower() not in ("", "false", "none")]
    everywhere = frozenset[int]().union(*_masks())
    if variables and allowed < everywhere:
        yield (
            f"{' and '.join(variables)} bound this thread to {format_cpus(allowed)} of the processors "
            f"{format_cpus(everywhere)} when OpenMP was loaded: what it starts from now on has no others"
        )


def _masks() -> Iterator[frozenset[int]]:
    """The processors of every thread, and those that the process was started on."""
    for status in Path("/proc/self/task").glob("*/status"):
        try:
            lines = status.read_text(encoding="utf-8").splitlines()
        except OSError:  # it has ended
            continue
        for line in lines:
            if line.startswith("Cpus_allowed_list:"):
                yield parse_cpus(line.partition(":")[2])


def _not_heard(one: LibraryFacts) -> Iterator[str]:
    asked = [name for name in DEAF.get((one.vendor, one.threading), ()) if os.environ.get(name)]
    if one.threading == "OpenMP":
        for name in asked:
            yield f"{named(one)} is built on OpenMP and does not read {name}={os.environ[name]}"
    elif any(os.environ[name] != "1" for name in asked):
        words = ", ".join(f"{name}={os.environ[name]}" for name in asked)
        yield f"{named(one)} was built for one thread, whatever {words} says"
    if one.threading == "none" and (one.threads or 1) > 1:
        yield f"{named(one)} answers {one.threads} threads ({one.threads_getter}) and was built for one"


def _too_many(one: LibraryFacts, processors: int) -> Iterator[str]:
    if one.threading != "none" and (one.threads or 1) > processors:
        yield (
            f"{named(one)} has {one.threads} threads ({one.threads_getter}), and this thread may use "
            f"{processors} processor{'s' if processors > 1 else ''}"
        )


def _kernels(one: LibraryFacts) -> Iterator[str]:
    if one.vendor != "OpenBLAS" or not one.kernel:
        return
    asked = os.environ.get("OPENBLAS_CORETYPE", "")
    if asked and asked.lower() != one.kernel.lower():
        problem = openblas_core_problem(asked)
        why = f": {problem}" if problem else ""
        yield f"{named(one)} has the kernels of {one.kernel}, not those of OPENBLAS_CORETYPE={asked}{why}"
    elif not asked and (missed := openblas_core_missed(one.kernel)):
        yield f"{named(one)} took the kernels of {one.kernel}, which leave this CPU's {missed} unused"
