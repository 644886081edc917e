"""Launches that something else on the machine has disturbed. They are kept and counted, never dropped."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.records.model import TIMED, LaunchRecord

# Shares of all CPUs during a launch. Below, timings of a quiet machine do not tell them apart.
STEAL_LIMIT = 0.02
OTHERS_LIMIT = 0.05


def is_disturbed(record: LaunchRecord) -> bool:
    """Whether the hypervisor or other processes took a share of the CPUs that shows in timings."""
    return _share(record, "steal_ratio") > STEAL_LIMIT or _share(record, "other_cpu_ratio") > OTHERS_LIMIT


def disturbance(records: Sequence[LaunchRecord]) -> str | None:
    """One sentence about all timed launches; None if they were left alone."""
    timed = [record for record in records if record.purpose in TIMED]
    disturbed = [record for record in timed if is_disturbed(record)]
    if not disturbed:
        return None
    steal = max(_share(record, "steal_ratio") for record in disturbed)
    others = max(_share(record, "other_cpu_ratio") for record in disturbed)
    causes = []
    if steal > STEAL_LIMIT:
        causes.append(f"up to {100 * steal:.0f} % stolen by the hypervisor")
    if others > OTHERS_LIMIT:
        causes.append(f"up to {100 * others:.0f} % of the CPUs used by other programs")
    return f"{len(disturbed)} of {len(timed)} timed launches disturbed ({', '.join(causes)}): kept, marked"


def _share(record: LaunchRecord, name: str) -> float:
    return record.witnesses.get(name) or 0.0
