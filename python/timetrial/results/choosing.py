"""One row of an experiment's results, however somebody points at it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timetrial.analysis.summary import Row
from timetrial.errors import InputError, nearest
from timetrial.records import store
from timetrial.records.model import ExperimentRecord
from timetrial.results.results import Results

Chosen = Results | Row | Mapping[str, Any] | str


def row_of(results: Results, chosen: Chosen) -> Row:
    """The row of `results` that is meant. InputError: it is not exactly one, or of another experiment."""
    rows = {row.case.id: row for row in results.whole.rows}
    if isinstance(chosen, str):
        if chosen not in rows:
            raise InputError(f"These results have no case '{chosen}'.{nearest(chosen, rows)}")
        return rows[chosen]
    if isinstance(chosen, Row):
        folders = [Path(launch.folder) for launch in chosen.launches]
        others = [folder for folder in folders if results.path.absolute() not in folder.absolute().parents]
        if others:
            _refuse(results.experiment, store.read_experiment(others[0].parents[1]))
        if chosen.case.id not in rows:
            raise InputError(f"The row '{chosen.case.id}' ({chosen.case.who}) is not of these results.")
        return rows[chosen.case.id]
    found = chosen if isinstance(chosen, Results) else results.sel(**chosen)
    if found.path.absolute() != results.path.absolute():
        _refuse(results.experiment, found.experiment)
    if len(found.rows) != 1:
        named = ", ".join(f"{row.case.id} ({row.case.who})" for row in found.rows)
        raise InputError(f"A comparison is between two rows; this chooses {len(found.rows)}: {named}.")
    return rows[found.rows[0].case.id]


def _refuse(own: ExperimentRecord, other: ExperimentRecord) -> None:
    cpus = own.machine.get("cpu"), other.machine.get("cpu")
    where = f", on another machine ({cpus[1]}, not {cpus[0]})" if cpus[0] != cpus[1] else ""
    raise InputError(
        f"The row is of another experiment, {other.name} of {other.created_at}{where}; this one is "
        f"{own.name} of {own.created_at}. What was measured at different times cannot be told from a drift "
        "of the machine. timetrial.race(a, b) measures both anew, in turns."
    )
