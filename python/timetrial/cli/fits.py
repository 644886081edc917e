"""timetrial fits key=value,value ..."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from timetrial.cli.options import Json

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT] KEY=VALUE,VALUE ...",
        help="As for `run`; each case has its own search: network=lenet5 backend=eigen,pytorch "
        "batch_size=16,256.",
    ),
]


def fits(
    words: Words = None,
    precision: Annotated[
        float, typer.Option(help="How far, as a fraction, above a size that is too small.")
    ] = 0.02,
    by: Annotated[
        Literal["cgroup", "data", "watchdog", "address_space"] | None,
        typer.Option(help="Who keeps the cap; as the setting memory.cap_by."),
    ] = None,
    as_json: Json = False,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Find the smallest cap on memory in which a training step still runs, for each case, by bisection.

    Exit code: 0 each case has one (or is not installed here), 1 some case has none, 2 bad input,
    130 interrupted.
    """
    from timetrial.cli.console import tell
    from timetrial.experiment.experiment import load_words
    from timetrial.fitting.fitting import fit_experiment

    try:
        found = fit_experiment(load_words(words or []), results, precision=precision, by=by, quiet=as_json)
    except KeyboardInterrupt as stopped:
        if stopped.args:  # whoever is interrupted before it begins has nothing to say
            typer.echo(f"timetrial: {stopped}", err=True)
        raise
    tell(found.table, found.to_json, as_json=as_json, later=f"cat {found.folder}/fits.json")
    if not found.is_whole:
        raise typer.Exit(1)
