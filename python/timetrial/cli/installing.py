"""What `timetrial frameworks install` and `check`, and those of `datasets`, show while they work."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from timetrial import environments
from timetrial.environments import Framework, Version, Wishes
from timetrial.errors import Unavailable

Chosen = Sequence[tuple[Framework, Version]]
WORTH_A_LINE = ("waiting", "broken", "its pins", "it is of", "not from")
HOW = {"made": "installed", "was there": "is there", "current": "is in the running interpreter"}


def install_all(chosen: Chosen, wishes: Wishes, *, named: bool) -> bool:
    """One after the other; whether all that was asked is there. What was not `named` and lacks something on
    this machine is left out."""
    failed = False
    for number, (framework, version) in enumerate(chosen, start=1):
        name = framework.word(version)
        with Step(name, number, len(chosen)) as step:
            try:
                done = environments.install(framework, version, dataclasses.replace(wishes, say=step.say))
            except environments.Lacking as lacking:
                failed |= named
                step.end("left out" if not named else "unavailable", str(lacking), "yellow")
            except KeyboardInterrupt:
                step.end("interrupted", "nothing half-made is left", "yellow")
                raise
            except Unavailable as failure:
                failed = True
                step.end("failed", str(failure), "red")
            else:
                step.end(HOW.get(done.how, done.how), f"{done.python}, {done.seconds:.0f} s", "green")
    return not failed


def check_all(chosen: Chosen, *, as_json: bool, named: bool) -> bool:
    """Whether everything works. What was not `named` is looked at only where it is installed."""
    found: list[dict[str, str | None]] = []
    for number, (framework, version) in enumerate(chosen, start=1):
        state = environments.state_of(framework, version)
        there = state.state in (*environments.READY, "broken")
        if not there and not named:
            continue
        name = framework.word(version)
        with Step(name, number, len(chosen), quiet=as_json) as step:
            step.say("starting it")
            problem = environments.check(framework, version) if there else "not installed"
            cure = environments.install_command(framework, version) if problem else None
            word, style = ("works", "green") if problem is None else ("broken", "red")
            step.end(word, f"{problem}: {cure}" if problem else state.detail, style)
        found.append({"name": name, "state": word, "problem": problem, "cure": cure})
    if as_json:
        typer.echo(json.dumps({"frameworks": found}, indent=1))
    elif not found:
        typer.echo("nothing is installed: timetrial frameworks install --cheap")
    return all(one["problem"] is None for one in found)


class Step:
    """One framework or data set: on a terminal a line that moves, elsewhere a line for what is new."""

    def __init__(self, name: str, number: int, count: int, *, quiet: bool = False):
        self._name = name
        self._place = f"[{number}/{count}] " if count > 1 else ""
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._progress.add_task(f"{self._place}{name}")
        self._quiet = quiet

    def __enter__(self) -> Step:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def say(self, words: str) -> None:
        """What is going on. Only what takes another way is worth a line of a log."""
        self._progress.update(self._task, description=f"{self._place}{self._name}: {words}"[:100])
        if not self._console.is_terminal and words.startswith(WORTH_A_LINE):
            self._console.print(f"{self._place}{self._name}: {words}", markup=False)

    def end(self, word: str, detail: str, style: str) -> None:
        """What came of it."""
        self._progress.stop()
        if not self._quiet:
            words = f" ({detail})" if style == "green" else f": {detail}"
            line = Text.assemble(f"{self._place}{self._name}: ", (word, style), words)
            Console(highlight=False, soft_wrap=True).print(line)
