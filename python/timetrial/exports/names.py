"""Names of cases for tools that follow a number from run to run.

A name says everything that was asked of a case, whatever else is in the experiment: it stays the same when a
contender is added, and it changes when the work does, so that no tool compares what cannot be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from timetrial.cases.case import NO_NETWORK
from timetrial.records.model import CaseRecord

LONGEST = 1024  # bytes; Bencher takes so many characters
_DEFAULTS = {"task": "train", "device": "cpu", "dtype": "f32", "semantics": "equal"}


def names_of(cases: Sequence[CaseRecord]) -> dict[str, str]:
    """Case id -> its name. All differ, none has line breaks, none is longer than LONGEST."""
    whole = {case.id: _name(case) for case in cases}
    counts = Counter(whole.values())
    return {
        case: shortened(name if counts[name] == 1 else f"{name} case={case}", case)
        for case, name in whole.items()
    }


def shortened(name: str, case: str) -> str:
    """The name, or its beginning and the case's id."""
    if len(name.encode()) <= LONGEST:
        return name
    end = f"... case={case}"
    return name.encode()[: LONGEST - len(end)].decode(errors="ignore") + end


def _name(case: CaseRecord) -> str:
    facts = {
        **case.axes,
        "network": case.network,
        "dataset": case.dataset,
        "batch_size": case.batch_size,
        **case.settings,
    }
    told = [
        f"{key}={value}"
        for key, value in facts.items()
        if key != "backend" and value not in (None, NO_NETWORK) and _DEFAULTS.get(key) != value
    ]
    # Tools put names into tables of one line per row.
    return " ".join(" ".join([case.who, *told]).split())
