"""timetrial doctor"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from timetrial.cli.options import Json


def doctor(
    noise: Annotated[
        bool, typer.Option("--noise", help="Look for two seconds at what makes timings restless, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what is ready, what is missing, and the one command that cures it.

    Exit code: 0 timetrial itself works (optional parts may be missing), 1 it does not.
    """
    from timetrial.experiment.doctor import doctor as diagnose

    diagnosis = diagnose(noise=noise)
    if as_json:
        typer.echo(json.dumps(diagnosis.to_json(), indent=1, allow_nan=False))
    else:
        from timetrial.cli.console import stdout
        from timetrial.report.doctor import DoctorReport

        stdout().print(DoctorReport(diagnosis))
    raise typer.Exit(0 if diagnosis.healthy else 1)
