"""timetrial race [EXPERIMENT] key=value,value ..."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.records.race import Metric

if TYPE_CHECKING:
    from timetrial.experiment.experiment import Experiment
    from timetrial.races import Race

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT] KEY=VALUE,VALUE ...",
        help="As for `run`. What has several values makes the sides; the first is the base: "
        "network=lenet5 threads=1 backend=pytorch,onednn. The folder of a race runs that race again.",
    ),
]


def race(
    words: Words = None,
    metric: Annotated[
        Metric, typer.Option(help="step_time, samples_per_s (batch sizes may differ) or peak_memory.")
    ] = "step_time",
    min_effect: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="The smallest difference worth a verdict, a fraction.")
    ] = 0.03,
    equivalence: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="What lies within +- this is the same, a fraction.")
    ] = 0.05,
    confirm: Annotated[
        bool, typer.Option(help="Race once more before saying that something is worse.")
    ] = True,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Whole launches in alternation, not turns: each is alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Race two or more ways of doing the same work, and say whether the difference is real.

    Exit code: 0 same or better, 1 worse, 2 bad input, 3 inconclusive, 4 could not be judged, 130 interrupted.
    """
    from timetrial.races import RaceInterrupted, Rule, run_race

    experiment = _experiment(words or [])
    rule = Rule(min_effect=min_effect, equivalence=equivalence)
    try:
        found = run_race(
            experiment, results, metric=metric, rule=rule, confirm=confirm, isolated=isolated, quiet=as_json
        )
    except RaceInterrupted as interrupted:
        _print(interrupted.race, as_json=as_json)
        raise typer.Exit(130) from None
    _print(found, as_json=as_json)
    raise typer.Exit(found.exit_code)


def _experiment(words: list[str]) -> Experiment:
    from timetrial.experiment.experiment import Experiment, load_words
    from timetrial.records.race import is_race, read_race

    if len(words) == 1 and is_race(Path(words[0])):
        return Experiment.from_dict(read_race(Path(words[0])).experiment.spec)
    return load_words(words)


def _print(found: Race, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1, allow_nan=False))
    else:
        from timetrial.cli.console import stdout

        stdout().print(found.table())
