"""Standard output for tables."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, RenderableType

from timetrial.records.files import near


class _Complaining(Console):
    """Where nobody reads any more, rich ends the process without a word, unless this says otherwise."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def stdout(console: type[Console] = Console) -> Console:
    """A console that does not cut tables short where standard output is a file or a pipe."""
    return console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)


def tell(
    table: Callable[[], RenderableType], document: Callable[[], object], *, as_json: bool, later: str
) -> None:
    """What was measured: the table, or one JSON object. Where standard output cannot take it, standard error
    has the command that shows it `later`: the records are there."""
    try:
        if as_json:
            sys.stdout.write(json.dumps(document(), indent=1, allow_nan=False) + "\n")
        else:
            stdout(_Complaining).print(table())
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        what = "JSON" if as_json else "table"
        words = f"standard output took no {what} ({error.strerror}). Nothing is lost: {later}"
        print(f"timetrial: {words}", file=sys.stderr)


def shown_later(records: Path) -> str:
    """The command."""
    return f"timetrial show {near(records.absolute())}"
