"""timetrial clean"""

from __future__ import annotations

import typer


def clean() -> None:
    """Remove the checkouts that races against revisions keep in the cache folder; the next one makes its own.

    Exit code: 0 none is left, 2 something is being measured.
    """
    from timetrial.contenders.revisions import remove_all
    from timetrial.processes.lock import MeasurementLock

    with MeasurementLock():
        for tree in remove_all():
            typer.echo(f"removed {tree}")
