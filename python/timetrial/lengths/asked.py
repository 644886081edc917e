"""Whether there are ways through sequences to choose from at all."""

from __future__ import annotations

from collections.abc import Collection

from timetrial.cases.case import Case
from timetrial.core import Network, recurs
from timetrial.errors import InputError
from timetrial.lengths.ways import SETTING
from timetrial.workloads.orders import lengths_name


def lengths_problem(case: Case, network: Network | None, spanned: Collection[str]) -> str | None:
    """Why there are none, where the setting is one of `spanned` (an axis); InputError where one value was
    asked."""
    asked = case.settings.get(SETTING)
    if asked is None:
        return None
    if network is None or lengths_name(network) is None:
        lacks = "reads no lengths"
    elif not recurs(one["name"] for one in network.parameters):
        lacks = "has no layer that goes on from its own last state"
    else:
        return None
    words = (
        f"{SETTING}={asked}: the network '{case.workload.network}' {lacks}, so there is one way only; "
        "leave it out"
    )
    if SETTING in spanned:
        return words
    raise InputError(f"{words}.")
