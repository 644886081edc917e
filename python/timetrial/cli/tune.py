"""timetrial tune key=value,value ..."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.options import Json
from timetrial.errors import InputError

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT] KEY=VALUE,VALUE ...",
        help="As for `run`. All cases are candidates; the first, what you use now, is the base: "
        "network=lenet5 backend=pytorch,onednn,eigen threads=1,2.",
    ),
]


def tune(
    words: Words = None,
    budget: Annotated[str, typer.Option(help="The time for search and race together: 90s, 5m, 1h.")] = "5m",
    memory: Annotated[
        str | None, typer.Option(help="The most that a candidate may hold: 2GB. What holds more is out.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how far the time goes, measure nothing."),
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with a search that was ended: its folder (tune-...).")
    ] = None,
    as_json: Json = False,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Find the fastest of many ways to do the same work: a search, whose winner must win a race.

    Exit code: 0 there is an answer ("the base is as good" is one), 1 the search could not go on, 2 bad input,
    130 interrupted (`--resume` goes on).
    """
    from timetrial.cases.budget import seconds_of
    from timetrial.cases.sizes import bytes_of
    from timetrial.cli.console import tell
    from timetrial.experiment.experiment import load_words
    from timetrial.tuning.forecast import forecast_tuning
    from timetrial.tuning.tuner import resume_tuning, tune_experiment

    if resume is not None:
        given = [
            *(words or []),
            *([f"--memory {memory}"] if memory else []),
            *(["--dry-run"] if dry_run else []),
        ]
        if given:
            raise InputError(
                f"--resume goes on with what '{resume}' asked for, and {' '.join(given)} was given as well. "
                "Leave that out; or tune anew, without --resume."
            )
        found = resume_tuning(resume, quiet=as_json)
    elif dry_run:
        expected = forecast_tuning(load_words(words or []), seconds_of(budget))
        typer.echo(json.dumps(expected.to_json(), indent=1) if as_json else expected.sentences())
        return
    else:
        experiment = load_words(words or [])
        most = None if memory is None else bytes_of(memory)
        found = tune_experiment(experiment, results, budget_s=seconds_of(budget), memory=most, quiet=as_json)
    tell(found.table, found.to_json, as_json=as_json, later=f"timetrial tune --resume {found.folder}")
