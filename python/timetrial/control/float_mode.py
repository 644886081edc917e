"""The setting `flush_to_zero`: whether subnormal numbers count as zero in a contender's arithmetic.

Arithmetic on subnormals costs up to a hundred cycles more, so who flushes them is faster where they are many,
and computes something slightly different. The mode belongs to a thread (two bits of its MXCSR), and threads
inherit it: a contender sets it before it loads its library, and again before its steps. That does not reach
threads that set their own (TensorFlow's pool flushes, whatever is asked) or that were there before (the BLAS
of NumPy in a framework's interpreter). So every thread that computed is read by the kernel, behind the last
timed step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from timetrial.core.observer import float_mode_of
from timetrial.processes.events import Reading
from timetrial.records.model import FloatMode, Setting, Thread

NAME = "flush_to_zero"
SOURCE = "MXCSR of every thread that computed, by ptrace"
COMPUTED = 0.01  # of the CPU time of all threads: less is no thread that computed


def with_float_modes(threads: Sequence[Thread]) -> list[Thread]:
    """The same threads, each with its mode; None where it is gone or the kernel does not let us look."""
    found = []
    for thread in threads:
        mode: FloatMode | None = None
        with contextlib.suppress(OSError):
            mode = float_mode_of(thread.tid)  # type: ignore[assignment]
        found.append(thread.model_copy(update={"flush_to_zero": mode}))
    return found


def judge_float_mode(asked: str | None, reading: Reading, threads: Sequence[Thread]) -> Setting:
    """By what every thread that computed has; where none could be read, by what the contender said."""
    least_ns = COMPUTED * sum(one.cpu_ns for one in threads)
    known = [one.flush_to_zero for one in threads if one.flush_to_zero and one.cpu_ns >= least_ns]
    if known:
        counts = {mode: known.count(mode) for mode in sorted(set(known))}
        effective: str | None = ", ".join(f"{mode} in {n} threads" for mode, n in counts.items())
        if len(counts) == 1:
            effective = known[0]
        source = SOURCE
    else:
        effective = reading.effective
        source = reading.how_read or "nothing reports it"
    if effective is None:
        return Setting(name=NAME, asked=asked, effective=None, how_read=source, status="unverifiable")
    status = "applied" if asked is None or asked == effective else "ignored"
    return Setting.model_validate(
        {"name": NAME, "asked": asked, "effective": effective, "how_read": source, "status": status}
    )
