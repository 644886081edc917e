"""timetrial frameworks list | install | check | remove"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.options import Json

if TYPE_CHECKING:
    from timetrial.environments import Framework, Version

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME[@VERSION] ...]", help="Which; a path to a framework's folder works too."),
]
Cheap = Annotated[bool, typer.Option("--cheap", help="Those that are installed soon, and that tests use.")]
All = Annotated[bool, typer.Option("--all", help="Every version that comes from packages.")]


def listing(names: Names = None, as_json: Json = False) -> None:
    """Show every version of every framework: installed, available, or what is lacking and its cure.

    Exit code: 0 shown, whatever is missing, 2 bad input.
    """
    from timetrial import environments

    states = [environments.state_of(*one) for one in _chosen(names or [], every=not names)]
    folder = str(environments.environments_folder())
    if as_json:
        typer.echo(json.dumps({"folder": folder, "frameworks": [one.to_json() for one in states]}, indent=1))
        return
    from timetrial.cli.console import stdout
    from timetrial.report.frameworks import FrameworksReport

    stdout().print(FrameworksReport(states, folder))


def install(
    names: Names = None,
    cheap: Cheap = False,
    everything: All = False,
    python: Annotated[str | None, typer.Option(help="The interpreter to make it with.")] = None,
    wheels: Annotated[
        Path | None, typer.Option(help="A folder of wheels, instead of the package index.")
    ] = None,
    adopt: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="Use the environment of this interpreter as it is.")
    ] = None,
    path: Annotated[Path | None, typer.Option(help="Your own installation, for those that need one.")] = None,
) -> None:
    """Bring frameworks, each into an interpreter of its own. NAME alone is its first version.

    With --cheap or --all, what this machine lacks an interpreter or a library for is left out with a word.

    Exit code: 0 what was asked is there, 1 something could not be installed, 2 bad input, 130 interrupted.
    """
    from timetrial.cli.installing import install_all
    from timetrial.environments import Wishes
    from timetrial.errors import InputError
    from timetrial.paths import user_path

    chosen = _chosen(names or [], cheap=cheap, every=everything)
    if not chosen:
        raise InputError("which? Name frameworks (`timetrial frameworks list` shows them), or --cheap, --all")
    if len(chosen) > 1 and (adopt or path):
        raise InputError("--adopt and --path belong to one framework: name one, with its version")
    own = user_path(path) if path else None
    wishes = Wishes(python=python, wheels=user_path(wheels) if wheels else None, adopt=adopt, path=own)
    if not install_all(chosen, wishes, named=bool(names)):
        raise typer.Exit(1)


def check(names: Names = None, as_json: Json = False) -> None:
    """Start what is installed: imports, versions against the pins, libraries. Without names, everything.

    Exit code: 0 all of it works, 1 something is broken or not installed, 2 bad input.
    """
    from timetrial.cli.installing import check_all

    sound = check_all(_chosen(names or [], every=not names), as_json=as_json, named=bool(names))
    raise typer.Exit(0 if sound else 1)


def remove(names: Names = None, everything: All = False) -> None:
    """Remove environments. One that was adopted is only forgotten: its files are the user's.

    Exit code: 0 it is not there any more, 1 it could not be removed, 2 bad input.
    """
    from timetrial import environments
    from timetrial.errors import InputError

    if not names and not everything:
        raise InputError("which? Name what to remove, with its version, or --all")
    for framework, version in _chosen(names or [], every=everything):
        done = environments.remove(framework, version, lambda words: typer.echo(words, err=True))
        if names or done != environments.NOT_THERE:
            typer.echo(f"{framework.word(version)}: {done}")


def _chosen(names: list[str], *, cheap: bool = False, every: bool = False) -> list[tuple[Framework, Version]]:
    """What the words mean, in the order of the catalog for those that were not named."""
    from timetrial import environments

    chosen = []
    for name in names:
        framework, version = environments.find_framework(name)
        chosen.append((framework, version or framework.versions[0]))
    for framework in environments.shipped_frameworks().values():
        for version in framework.versions:
            if every or (cheap and version.cheap):
                chosen.append((framework, version))
    return [one for number, one in enumerate(chosen) if one not in chosen[:number]]
