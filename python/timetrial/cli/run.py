"""timetrial run EXPERIMENT [key=value,value ...]"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.options import Columns, Json, ProveAgain

if TYPE_CHECKING:
    from timetrial.experiment.experiment import Experiment
    from timetrial.results.results import Results

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EXPERIMENT [KEY=VALUE,VALUE ...]",
        help="A name (`timetrial list`), a path to a .toml file, or words alone: network=mlp backend=eigen. "
        "A key replaces what the experiment says; a comma list spans.",
    ),
]


def run(
    words: Words = None,
    as_json: Json = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how long and how fine, measure nothing.")
    ] = False,
    columns: Columns = None,
    budget: Annotated[
        str | None, typer.Option(help="The best answer in this time: 90s, 2m, 1h (the key `budget`).")
    ] = None,
    prove_again: ProveAgain = False,
    resume: Annotated[
        str | None, typer.Option(help="Do what is missing of a run that was ended: its folder, or its id.")
    ] = None,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Measure an experiment, each contender in processes of its own, and print the table.

    Exit code: 0 all rows are ok or unavailable, 1 some row failed, 2 bad input, 130 interrupted (143 by
    SIGTERM, 129 by SIGHUP).
    """
    from timetrial.cli.resuming import resumed_folder
    from timetrial.experiment.experiment import load_words
    from timetrial.experiment.runner import Interrupted, RunStoppedError, resume_experiment, run_experiment
    from timetrial.report.more_columns import column_names

    named = column_names(columns)  # before anything is measured
    words = [*(words or []), *([f"budget={budget}"] if budget else [])]
    given = [*words, *(["--dry-run"] if dry_run else []), *(["--prove-again"] if prove_again else [])]
    folder = resumed_folder(resume, results, "run", given) if resume is not None else None
    try:
        if folder is not None:
            measured = resume_experiment(folder, quiet=as_json)
        elif dry_run:
            _forecast(load_words(words), results, as_json=as_json)
            return
        else:
            measured = run_experiment(load_words(words), results, prove_again=prove_again, quiet=as_json)
    except (Interrupted, RunStoppedError) as ended:
        _print(ended.results, as_json=as_json, columns=named)
        raise
    _print(measured, as_json=as_json, columns=named)
    raise typer.Exit(0 if all(row.outcome in ("ok", "unavailable") for row in measured.rows) else 1)


def _print(results: Results, *, as_json: bool, columns: list[str]) -> None:
    from timetrial.cli.console import shown_later, tell

    tell(
        lambda: results.table(columns=columns),
        results.to_json,
        as_json=as_json,
        later=shown_later(results.path),
    )


def _forecast(experiment: Experiment, results: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

    from timetrial.experiment.engine import real_engine
    from timetrial.experiment.estimate import TYPICAL_RATIO_SCATTER, forecast
    from timetrial.experiment.validate import validate
    from timetrial.races.pace import pace_of, work_of
    from timetrial.report.numbers import seconds

    engine = real_engine()
    ready = validate(experiment.cases, engine)
    pace = pace_of(results, engine.machine(), work_of([one.case for one in ready]))
    expected = forecast(experiment, ready, pace.scatter if pace else TYPICAL_RATIO_SCATTER)
    if as_json:
        facts = {**asdict(expected), "cases": len(ready), "launches": expected.launches}
        stages = facts.pop("stages")
        facts |= {name: stage["launches"] for name, stage in stages.items()}
        facts["seconds_of"] = {name: stage["seconds"] for name, stage in stages.items()}
        if expected.visible_difference == float("inf"):
            facts["visible_difference"] = None
        typer.echo(json.dumps(facts, indent=1, allow_nan=False))
        return
    kinds = ", ".join(
        f"{planned.launches} {stage}"
        for stage, planned in expected.stages.items()
        if planned.launches or stage != "resources"
    )
    typer.echo(
        f"{experiment.spec.name}: {len(ready)} cases, {expected.launches} launches "
        f"({kinds}), about {seconds(expected.seconds)}."
    )
    sizes = experiment.sizes
    if experiment.spec.measure.isolated:
        typer.echo(
            f"Each speed launch goes on until its median is known to ±{100 * sizes.rule.half_width:g} %, "
            f"for at most {sizes.budget_ns / 1e9:g} s."
        )
    elif expected.half_width is not None:
        typer.echo(
            f"More launches follow, at most {expected.most_launches} of each case "
            f"(about {seconds(expected.most_seconds)} in all), "
            f"until half of the ratios are known to ±{100 * expected.half_width:g} %."
        )
    if expected.visible_difference == float("inf"):
        typer.echo("One launch per case: no interval, no difference can be shown.")
    else:
        typer.echo(
            f"Differences of {100 * expected.visible_difference:.1f} % and more will show, if ratios of "
            f"launches scatter by {100 * expected.scatter:.1f} %, "
            f"{'as in earlier races here' if pace else 'which is typical'}."
        )
    # Once, however many networks, tasks or sizes of batch there are.
    absent = {
        (f"{one.case.backend} {one.case.settings.get('threads', '')}".rstrip(), one.unavailable): None
        for one in ready
        if one.unavailable is not None
    }
    for name, why in absent:
        typer.echo(f"unavailable: {name}: {why}")
