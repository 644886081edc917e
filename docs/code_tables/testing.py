"""The pytest plug-in: its options and its marker, as pytest shows them."""

from __future__ import annotations

from typing import Any

from code_tables.entry import Entry, Table, text
from timetrial.testing import plugin


class _Listening:
    """Stands in for pytest's parser and its group."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def getgroup(self, *_names: str) -> _Listening:
        return self

    def addoption(self, name: str, **said: Any) -> None:
        value = "|".join(said["choices"]) if "choices" in said else said.get("metavar", "")
        self.entries.append(Entry(f"{name}={value}" if value else name, said.get("help", "")))


def options() -> Table:
    """Of the command line."""
    parser = _Listening()
    plugin.pytest_addoption(parser)  # type: ignore[arg-type]
    return Table(("option", "what it is"), parser.entries)


def marker() -> str:
    """What `pytest --markers` says of it."""
    call, _, words = plugin.MARKER.partition(": ")
    return f"`@pytest.mark.{call}`: {text(words)}"
