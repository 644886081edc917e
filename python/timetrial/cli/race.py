"""timetrial race [EXPERIMENT] key=value,value ..."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.options import Json, ProveAgain
from timetrial.errors import InputError
from timetrial.records.metric import Metric, raced_words

if TYPE_CHECKING:
    from timetrial.experiment.experiment import Experiment
    from timetrial.races import Race

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT] KEY=VALUE,VALUE ...",
        help="As for `run`. What has several values makes the sides; the first is the base: "
        "network=lenet5 threads=1 backend=pytorch,onednn. The folder of a race runs that race again, "
        "with its options.",
    ),
]


def race(
    words: Words = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help=f"{raced_words()}; the first unless asked. With samples_per_s batch sizes may differ."
        ),
    ] = None,
    min_effect: Annotated[
        float | None,
        typer.Option(min=0.001, max=1.0, help="The smallest difference worth a verdict: 0.03, a fraction."),
    ] = None,
    equivalence: Annotated[
        float | None,
        typer.Option(min=0.001, max=1.0, help="What lies within +- this is the same: 0.05, a fraction."),
    ] = None,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--no-confirm", help="Race once more before saying that something is worse: yes."
        ),
    ] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Whole launches in alternation, not turns: each is alone.")
    ] = False,
    most_pairs: Annotated[
        int | None,
        typer.Option(
            min=4, max=400, help="End undecided after so many pairs: 24. More find smaller differences."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Race your own step against itself in a revision of git's, or in another folder."),
    ] = None,
    base_setup: Annotated[
        str | None,
        typer.Option(help='Install that revision, for an interpreter of its own: "pip install -e ."'),
    ] = None,
    as_json: Json = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say who races and how long, measure nothing.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help="The best answer in this time: 90s, 2m, 1h (the key `budget`).")
    ] = None,
    prove_again: ProveAgain = False,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a race that was ended: its folder, or its id.")
    ] = None,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Race two or more ways of doing the same work, and say whether the difference is real.

    Exit code: 0 same or better, 1 worse, 2 bad input, 3 inconclusive, 4 could not be judged, 130 interrupted.
    """
    from timetrial.cli.resuming import resumed_folder
    from timetrial.races import RaceInterrupted, RaceStoppedError, resume_race, run_race
    from timetrial.races.side import against as with_base

    if base_setup is not None and against is None:
        raise InputError("--base-setup installs the revision of --against: give both.")
    rule = {"min_effect": min_effect, "equivalence": equivalence}
    rule = {key: value for key, value in rule.items() if value is not None}
    options = {"metric": metric, "confirm": confirm, "isolated": isolated or None}
    options = {key: value for key, value in options.items() if value is not None}
    try:
        if resume is not None:
            given = [*(words or []), *(["--dry-run"] if dry_run else [])]
            given += [*(f"--{key.replace('_', '-')}" for key in {**rule, **options})]
            given += ["--most-pairs"] if most_pairs is not None else []
            given += ["--prove-again"] if prove_again else []
            given += ["--against"] if against is not None else []
            found = resume_race(resumed_folder(resume, results, "race", given), quiet=as_json)
        else:
            experiment, asked = _asked(words or [], budget)
            if against is not None:
                experiment = with_base(experiment, against, base_setup)
            chosen = replace(asked["rule"], **rule)
            asked.update(options, rule=chosen.up_to(most_pairs) if most_pairs else chosen)
            if dry_run:
                _forecast(experiment, asked, results, as_json=as_json)
                return
            found = run_race(experiment, results, **asked, prove_again=prove_again, quiet=as_json)
    except (RaceInterrupted, RaceStoppedError) as ended:
        _print(ended.race, as_json=as_json)
        raise
    _print(found, as_json=as_json)
    raise typer.Exit(found.exit_code)


def _asked(words: list[str], budget: str | None) -> tuple[Experiment, dict[str, Any]]:
    """What is raced, and how it is unless options say otherwise: as usual, or as that race was."""
    from timetrial.experiment.experiment import Experiment, load_words
    from timetrial.paths import user_path
    from timetrial.races import Race, Rule
    from timetrial.records.race import is_race

    if len(words) == 1 and is_race(user_path(words[0])):
        before = Race(user_path(words[0]))
        record = before.record
        isolated = record.isolated and record.why_isolated is None  # asked for, not for want of memory
        asked = {
            "metric": record.metric,
            "rule": before.rule,
            "confirm": record.confirm,
            "isolated": isolated,
        }
        spec = record.experiment.spec
        if budget is not None:
            spec = {**spec, "measure": {**spec.get("measure", {}), "budget": budget}}
        return Experiment.from_dict(spec), asked
    return load_words([*words, *([f"budget={budget}"] if budget else [])]), {"rule": Rule()}


def _forecast(experiment: Experiment, asked: dict[str, Any], results: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

    from timetrial.experiment.engine import real_engine
    from timetrial.experiment.validate import validate
    from timetrial.races.forecast import race_forecast
    from timetrial.races.pace import pace_of, work_of
    from timetrial.races.side import check_sides
    from timetrial.report.race_forecast import forecast_lines
    from timetrial.results.names import side_names

    cases, engine = [one.case for one in experiment.cases], real_engine()
    check_sides(cases, asked.get("metric", "step_time"))
    names = side_names(cases)
    expected = race_forecast(
        validate(experiment.cases, engine),
        names,
        asked["rule"],
        confirm=asked.get("confirm", True),
        pace=pace_of(results, engine.machine(), work_of(cases)),
        budget_s=experiment.spec.measure.budget,
    )
    if as_json:
        typer.echo(json.dumps(asdict(expected), indent=1))
        return
    for line in forecast_lines(expected, list(names.values())):
        typer.echo(line)


def _print(found: Race, *, as_json: bool) -> None:
    from timetrial.cli.console import shown_later, tell

    tell(found.table, found.to_json, as_json=as_json, later=shown_later(found.folder))
