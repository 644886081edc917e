"""timetrial list"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.options import Json

MOST = 20  # records that are listed
LONGEST = 60  # of the words that say what was measured


def listing(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]",
            help="experiments, backends, networks, datasets, libraries, settings or results (what was "
            "measured here, the last first). Without it, all but results.",
        ),
    ] = None,
    as_json: Json = False,
    results: Annotated[Path, typer.Option(help="The folder that has the records.")] = Path("results"),
    all_of_them: Annotated[bool, typer.Option("--all", help=f"All results, not the last {MOST}.")] = False,
) -> None:
    """List what can be named: experiments, backends, networks, datasets, libraries, settings; or results.

    Exit code: 0 listed, 2 there is no such list.
    """
    if what == "results":
        _list_results(results, None if all_of_them else MOST, as_json=as_json)
        return
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


def _list_results(results: Path, most: int | None, *, as_json: bool) -> None:
    from timetrial.races.history import history

    entries, count = history(results, most)
    if as_json:
        typer.echo(json.dumps([vars(one) for one in entries], indent=1))
        return
    shown = [textwrap.shorten(one.what, LONGEST, placeholder=" ...") for one in entries]
    width = max(map(len, shown), default=0)
    for one, what in zip(entries, shown, strict=True):
        typer.echo(f"{one.id:<12}  {one.when:<16}  {what:<{width}}  {one.found}".rstrip())
    if count > len(entries):
        typer.echo(f"and {count - len(entries)} older: timetrial list results --all")
    elif not entries:
        typer.echo(f"nothing was measured into {results} yet")
