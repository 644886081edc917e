"""timetrial self-check [--full]"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from timetrial.cli.options import Json


def self_check(
    full: Annotated[
        bool, typer.Option("--full", help="As many races as the promised error rates need: about two hours.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the order of the races and all in them: 1.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Go on with one that was interrupted.")
    ] = None,
    as_json: Json = False,
    results: Annotated[Path, typer.Option(help="The folder that gets the records.")] = Path("results"),
) -> None:
    """Race sides whose difference is known, and count how often the verdict is wrong on this machine.

    Exit code: 0 nothing is worse than promised, 1 something is, 2 bad input, 4 it could not be measured,
    130 interrupted.
    """
    from timetrial.errors import InputError
    from timetrial.selfcheck.run import SelfCheckInterrupted, go_on
    from timetrial.selfcheck.run import self_check as check

    if resume is not None and (full or seed is not None):
        raise InputError(f"--resume {resume}: it goes on as it began, so leave --full and --seed out.")

    interrupted = False
    try:
        if resume is not None:
            found = go_on(resume, quiet=as_json)
        else:
            found = check(results, full=full, seed=1 if seed is None else seed, quiet=as_json)
    except SelfCheckInterrupted as stopped:  # two hours of races are worth their table
        found, interrupted = stopped.found, True
    from timetrial.cli.console import tell
    from timetrial.report.self_check import SelfCheckTable

    later = f"timetrial self-check --resume {found.folder}"
    tell(lambda: SelfCheckTable(found), found.to_json, as_json=as_json, later=later)
    if interrupted:
        raise KeyboardInterrupt
    raise typer.Exit(1 if found.faults else 0)
