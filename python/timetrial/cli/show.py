"""timetrial show RECORD"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.options import Columns


def show(
    record: Annotated[str, typer.Argument(help="The folder of a record, its id under --results, or `last`.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON of the command that made it and nothing else.")
    ] = False,
    columns: Columns = None,
    results: Annotated[Path, typer.Option(help="The folder that has the records.")] = Path("results"),
) -> None:
    """Show an earlier run, profile or race: the table, then the details.

    Exit code: 0 shown, 1 it cannot be read, 2 bad input.
    """
    from timetrial.records import store
    from timetrial.records.race import is_race
    from timetrial.report.more_columns import column_names
    from timetrial.results.results import Results

    named = column_names(columns)
    folder = store.find(record, results)
    if is_race(folder):
        _show_race(folder, as_json=as_json)
        return
    found = Results(folder)
    profiled = found.experiment.profiles > 0
    if as_json:
        document = found.profile.to_json() if profiled else found.to_json()
        typer.echo(json.dumps(document, indent=1, allow_nan=False))
        return
    from timetrial.cli.console import stdout
    from timetrial.report.detail import CaseDetail, ExperimentDetail

    console = stdout()
    console.print(found.profile.table() if profiled else found.table(columns=named))
    if any("memory.cap" in row.case.axes for row in found.rows):
        console.print(found.caps.table())
    console.print(ExperimentDetail(found))
    for row in found.rows:
        console.print(CaseDetail(row))


def _show_race(folder: Path, *, as_json: bool) -> None:
    from timetrial.cli.console import stdout
    from timetrial.report.race import explain
    from timetrial.results.race import Race

    found = Race(folder)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1, allow_nan=False))
        return
    stdout().print(found.table())
    for duel in found.duels:
        stdout().print(explain(found, duel), markup=False, highlight=False)
