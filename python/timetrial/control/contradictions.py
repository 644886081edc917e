"""What does not go together in a contender's process, though each setting took effect: said with its row.

For the user's own process, which can be asked more, in_process/contradictions.py says it. That a library is
mapped and another one works, that threads never work and that a core type is above the CPU is seen by who
judges that setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from timetrial.cautions import Caution
from timetrial.control.kernels import Loaded, place

RUNTIMES = ("libgomp", "libiomp5", "libomp")


def contradictions(
    mapped: Iterable[Path], loaded: Loaded, given: frozenset[int] | None, *, said: bool
) -> list[str]:
    """One warning each. `given`: the processors that it was given. `said`: a wider pool is judged
    already, with the threads that were asked."""
    runtimes = sorted({str(path) for path in mapped if _stem(path) in RUNTIMES})
    found = two_runtimes([place(path) for path in runtimes])
    return found if said or given is None else found + list(_wide_pools(loaded, len(given)))


def two_runtimes(runtimes: Sequence[str]) -> list[str]:
    """One warning, or none. `runtimes`: what each OpenMP runtime of a process is to be called."""
    if len(runtimes) < 2:
        return []
    return [Caution.TWO_OPENMP.words(count=len(runtimes), files=" and ".join(runtimes))]


def _stem(path: Path) -> str:
    """'libgomp' of libgomp.so.1 and of libgomp-a34b3233.so.1, the form in which wheels bring it."""
    return path.name.partition(".")[0].partition("-")[0]


def _wide_pools(loaded: Loaded, processors: int) -> Iterator[str]:
    for one in loaded:
        if (one.threads or 0) > processors:
            yield Caution.WIDE_POOL.words(
                library=place(one.path), threads=one.threads, getter=one.threads_getter, processors=processors
            )
