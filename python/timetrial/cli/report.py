"""timetrial report RESULTS... -o report.html"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    records: Annotated[
        list[str],
        typer.Argument(metavar="RESULTS...", help="Folders of records, ids under --results, or `last`."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Of the page.")] = "",
    results: Annotated[Path, typer.Option(help="The folder that has the records.")] = Path("results"),
) -> None:
    """Write results as one page of HTML that needs no network and no scripts.

    Exit code: 0 written, 1 it could not be written, 2 bad input.
    """
    from timetrial.page.page import write_report

    typer.echo(write_report(records, output, title=title, results=results))
