"""timetrial backends list | build"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from timetrial.cli.options import Json


def listing(
    as_json: Json = False,
) -> None:
    """Show what every native backend is on this machine. Builds nothing.

    Exit code: 0 shown, whatever is missing.
    """
    from timetrial.building.listing import backend_states

    states = backend_states()
    if as_json:
        typer.echo(json.dumps({"backends": [state.to_json() for state in states]}, indent=1))
        return
    width = max(len(state.name) for state in states)
    for state in states:
        cure = f": {state.cure}" if state.cure else ""
        typer.echo(f"{state.name:<{width}}  {state.state:<11}  {state.detail}{cure}")


def build(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME ...]", help="What to build; without it, everything.")
    ] = None,
) -> None:
    """Build the backends that stand on a library of this machine, ahead of their first run.

    Exit code: 0 all are built, 1 one could not be built, 2 bad input.
    """
    from timetrial import building
    from timetrial.errors import Unavailable

    failed = False
    for recipe in [building.recipe_named(name) for name in names or building.RECIPES]:
        try:
            plan = building.make_plan(recipe)
            path = building.ensure(plan)
        except Unavailable as lacking:
            failed = True
            typer.echo(f"timetrial: {recipe.name}: unavailable: {lacking}", err=True)
        else:
            typer.echo(f"{recipe.name}: built for {plan.target.name}: {path}")
    if failed:
        raise typer.Exit(1)
