"""timetrial settings"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from timetrial.cli.options import Json


def settings(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One setting, with all there is to know: affinity.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what can be set: values, default, which contenders have each; with a name, how it is read back.

    Exit code: 0 shown, 2 there is no such setting.
    """
    from timetrial.contenders.known_settings import known_settings

    found = known_settings(name)
    if as_json:
        typer.echo(json.dumps({"settings": [asdict(one) for one in found]}, indent=1))
        return
    from timetrial.cli.console import stdout
    from timetrial.report.settings import one_setting, settings_table

    stdout().print(settings_table(found) if name is None else one_setting(found[0]))
