"""timetrial list"""

from __future__ import annotations

import json
from typing import Annotated

import typer


def listing(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[experiments|backends|networks|datasets|libraries|settings]",
            help="One list; without it, all.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List what can be named: experiments, backends, networks, datasets, libraries, settings."""
    from timetrial.experiment.catalog import catalog

    lists = catalog(what)
    if as_json:
        typer.echo(json.dumps(lists, indent=1))
        return
    for title, entries in lists.items():
        typer.secho(title, bold=True)
        width = max((len(name) for name in entries), default=0)
        for name, words in entries.items():
            typer.echo(f"  {name:<{width}}  {words}".rstrip())
