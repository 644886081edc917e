"""timetrial clean"""

from __future__ import annotations

import typer


def clean() -> None:
    """Remove the work trees that races against revisions keep in the cache, with their environments; the next
    race against a revision checks it out again.

    Exit code: 0 none is left, 2 something is being measured.
    """
    from timetrial.contenders.revisions import remove_all
    from timetrial.processes.lock import MeasurementLock

    with MeasurementLock():
        removed = remove_all()
    for tree in removed:
        typer.echo(f"removed {tree}")
    typer.echo(f"{len(removed)} work trees removed" if removed else "there are no kept work trees")
