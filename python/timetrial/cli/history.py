"""timetrial history FILE"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def history(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A history: JSON lines that `timetrial export --format history` and pytest's --bench-json "
            "append to.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw it into this file: .png, .svg, .pdf, .html.")
    ] = None,
    name: Annotated[str, typer.Option(help="Only names that fit; * stands for anything.")] = "*",
) -> None:
    """Show numbers over time, or draw them: a panel for each name, with intervals.

    Where the machine or what it stood on changed is a break, and nothing is joined across it.

    Exit codes: 0 shown or drawn, 2 bad input.
    """
    from timetrial.changes.history import history as read

    found = read(file)
    found = found if name == "*" else found.sel(name)
    if output is None:
        from timetrial.cli.console import stdout

        stdout().print(found.table())
        return
    from timetrial.page.figure_file import write_figure

    typer.echo(write_figure(output, found.plot, f"History: {found.path.name}", found.notes))
    for note in found.notes:
        typer.echo(f"! {note}", err=True)
