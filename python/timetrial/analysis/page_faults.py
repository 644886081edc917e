"""Launches of a row that differ in page faults: more steps of the same launch cannot average that out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetrial.cautions import Caution

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timetrial.analysis.summary import Launch

FAULT_NS = 1_000.0  # what a minor fault costs about, on a virtual machine; less without one
WORTH_SAYING = 0.02  # of the step


def page_faults(launch: Launch) -> float | None:
    """Minor page faults in a step while steady; None: nobody counted."""
    return launch.record.witnesses.get("page_faults_per_step")


def unequal_page_faults(launches: Sequence[Launch]) -> list[str]:
    """A warning where they may explain 2 % of the step, and more, between launches of one row."""
    return unequal_faults(
        (faults, launch.step_time_ns)
        for launch in launches
        if launch.counts and launch.step_time_ns and (faults := page_faults(launch)) is not None
    )


def unequal_faults(launches: Iterable[tuple[float, float]]) -> list[str]:
    """The same of faults in a step and step time [ns] of each launch."""
    known = sorted(launches)
    if len(known) < 2:
        return []
    (fewest, step_ns), (most, _) = known[0], known[-1]
    if (most - fewest) * FAULT_NS < WORTH_SAYING * step_ns:
        return []
    return [Caution.PAGE_FAULTS.words(fewest=f"{fewest:.0f}", most=f"{most:.0f}")]
