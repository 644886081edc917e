"""timetrial profile EXPERIMENT [key=value,value ...]"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.options import Json, ProveAgain
from timetrial.cli.run import Words

if TYPE_CHECKING:
    from timetrial.results.profile import Profile


def profile(
    words: Words = None,
    as_json: Json = False,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw a stacked bar per case into this file (.png, .svg, .pdf).")
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option(help="Also draw every layer below peak and memory bandwidth into this file."),
    ] = None,
    prove_again: ProveAgain = False,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Say where a training step's time goes: per layer and direction, against the machine's measured peak and
    the measured bandwidth of its memory.

    Each case is proven, then profiled in a launch of its own. Exit codes as in `run`.
    """
    from timetrial.experiment.experiment import load_words
    from timetrial.experiment.runner import Interrupted, profile_experiment

    experiment = load_words(words or [])
    for option, file in (("--figure", figure), ("--roofline", roofline)):
        if file is not None:
            from timetrial.figures.plots_style import check_figure_file

            check_figure_file(file, option)
    try:
        measured = profile_experiment(experiment, results, prove_again=prove_again, quiet=as_json)
    except Interrupted as interrupted:
        _print(interrupted.results.profile, as_json=as_json)
        raise KeyboardInterrupt from None
    _print(measured, as_json=as_json)
    if figure is not None:
        measured.plot().savefig(figure, dpi=150)
    if roofline is not None:
        measured.roofline().savefig(roofline, dpi=150)
    raise typer.Exit(0 if all(case.row.outcome in ("ok", "unavailable") for case in measured) else 1)


def _print(profile: Profile, *, as_json: bool) -> None:
    from timetrial.cli.console import shown_later, tell

    tell(profile.table, profile.to_json, as_json=as_json, later=shown_later(profile.path))
