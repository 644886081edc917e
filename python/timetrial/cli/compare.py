"""timetrial compare OLD NEW"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.options import Json

_WHICH = "The folder of a record, its id under --results, or `last`."


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help=_WHICH)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The later one, likewise.")],
    as_json: Json = False,
    results: Annotated[Path, typer.Option(help="The folder that has the records.")] = Path("results"),
) -> None:
    """Say what changed from one run, or race, to a later one: around it, and which rows moved.

    Times of different days are no verdict: what comes last is the race that would settle it. Exit code: 0 no
    row is worse, 1 one is slower against its reference, less accurate, or failed, 2 bad input, 3 of no row it
    can be known, 4 the comparison failed.
    """
    from timetrial.changes.comparison import compare as of
    from timetrial.cli.console import stdout

    found = of(old, new, results=results)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1, allow_nan=False))
    else:
        stdout().print(found.table())
    raise typer.Exit(found.exit_code)
