"""Names of cases for tools that follow a number from run to run.

A name says everything that was asked of a case, whatever else is in the experiment: it stays the same when a
contender is added, and it changes when the work does, so that no tool compares what cannot be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from timetrial.cases.case import NO_NETWORK, Case
from timetrial.contenders.functions import short_names, shown
from timetrial.records.model import CaseRecord
from timetrial.records.reference import facts_of

LONGEST = 1024  # bytes; Bencher takes so many characters
_DEFAULTS = {"task": "train", "device": "cpu", "dtype": "f32", "semantics": "equal", "buckets": 1}


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
        "buckets": case.buckets,
        **case.settings,
    }
    told = [
        f"{key}={value}"
        for key, value in facts.items()
        if key != "backend" and value not in (None, NO_NETWORK) and _DEFAULTS.get(key) != value
    ]
    # Tools put names into tables of one line per row.
    return " ".join(" ".join([case.who, *told]).split())


def side_names(cases: Sequence[Case | CaseRecord]) -> dict[str, str]:
    """Case id -> backend and whatever tells the sides apart: 'eigen threads=2'."""
    facts = [case.facts() if isinstance(case, Case) else facts_of(case) for case in cases]
    keys = list(dict.fromkeys(key for one in facts for key in one))
    varying = [key for key in keys if key != "backend" and len({repr(one.get(key)) for one in facts}) > 1]
    called = short_names(case.backend for case in cases)
    names = {}
    for case, own in zip(cases, facts, strict=True):
        told = [f"{key}={shown(str(own[key]))}" for key in varying if own.get(key) is not None]
        who = case.who if isinstance(case, CaseRecord) else called.get(case.backend, case.backend)
        names[case.id] = " ".join([who, *told])
    return names
