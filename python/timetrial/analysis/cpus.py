"""How many CPUs a case used, and whether more threads did more than use more of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from timetrial.cautions import Caution

if TYPE_CHECKING:
    from timetrial.analysis.summary import Launch, Row

# More threads that use so many times the CPUs of one and save less than this share of its time are named.
MORE_CPUS = 1.5
LEAST_GAIN = 0.03


def cpus_used(launches: Sequence[Launch]) -> float | None:
    """CPU time over wall time while steady, the whole process tree: the median over the speed launches that
    are ok. None: nobody looked."""
    seen = [
        used
        for one in launches
        if one.record.purpose == "speed" and one.record.outcome == "ok"
        if (used := one.record.witnesses.get("cpus_used")) is not None
    ]
    return median(seen) if seen else None


def idle_threads(rows: Sequence[Row]) -> list[str]:
    """Rows whose threads are busy to no use, beside the row of the same case with one thread. CPU time cannot
    tell a thread that works from one that spins; the step time can."""
    alone = {_without_threads(row): row for row in rows if row.case.settings.get("threads") == "1"}
    found = []
    for row in rows:
        one = alone.get(_without_threads(row))
        if one is None or one is row or row.step_time_ns is None or one.step_time_ns is None:
            continue
        used, least = row.cpus_used, one.cpus_used
        ratio = row.step_time_ns.estimate / one.step_time_ns.estimate
        if used is None or least is None or used < MORE_CPUS * least or ratio < 1 - LEAST_GAIN:
            continue
        found.append(
            Caution.IDLE_THREADS.words(
                who=f"{row.case.who} with {row.case.settings['threads']} threads",
                cpus=f"{used:.1f}",
                times=f"{ratio:.2f}",
            )
        )
    return found


def _without_threads(row: Row) -> str:
    case = row.case
    axes, settings = ({k: v for k, v in d.items() if k != "threads"} for d in (case.axes, case.settings))
    return repr((case.backend, case.batch_size, sorted(axes.items(), key=str), sorted(settings.items())))
