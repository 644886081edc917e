"""What the timed steps of the rows of a table do not have in common."""

from __future__ import annotations

from collections.abc import Iterable

from timetrial.cautions import Caution
from timetrial.records.model import TIMED, LaunchRecord

FLUSH = "flush_to_zero"
_NOTHING_TO_RESET = "null"


def unequal_steps(launches: Iterable[tuple[str, LaunchRecord]]) -> list[str]:
    """Backend and record of each launch. In words: whose steps go on and on beside others that repeat theirs,
    and who flushes subnormal numbers unasked beside others that do not."""
    repeats: dict[bool, set[str]] = {True: set(), False: set()}
    flushes: dict[str, set[str]] = {}
    for name, record in launches:
        if record.purpose not in TIMED or record.outcome != "ok":
            continue
        if record.passes is not None and name != _NOTHING_TO_RESET:
            repeats[record.passes.steps is not None].add(name)
        for one in record.settings:
            if one.name == FLUSH and one.asked is None and one.effective is not None:
                flushes.setdefault(one.effective, set()).add(name)
    found = []
    if repeats[True] and repeats[False]:
        names = ", ".join(sorted(repeats[False]))
        found.append(Caution.OTHER_STEPS.words(names=names))
    if len(flushes) > 1:
        words = "; ".join(f"{mode}: {', '.join(sorted(who))}" for mode, who in sorted(flushes.items()))
        found.append(Caution.FLUSHES.words(modes=f"{FLUSH} {words}"))
    return found
