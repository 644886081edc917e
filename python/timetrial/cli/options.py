"""Options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

Columns = Annotated[
    str | None,
    typer.Option(
        help="More columns of the table, a comma list: cpus, faults, waiting, busiest, on_paper, ..."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ProveAgain = Annotated[bool, typer.Option("--prove-again", help="Prove anew what earlier runs have proven.")]
