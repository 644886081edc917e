"""`timetrial frameworks list` and `check`, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from timetrial.environments import State

_LOOKS = {
    "installed": ("●", "green"),
    "current": ("●", "green"),
    "available": ("○", "cyan"),
    "lacking": ("-", "yellow"),
    "broken": ("!", "bold red"),
}


class FrameworksReport:
    """A renderable: one line per version, grouped by framework; the cures that are not `install` below it."""

    def __init__(self, states: Sequence[State], folder: str):
        self._states = states
        self._folder = folder

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, then what to type."""
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("framework", "version", "", "", "modes", "python", "size", "verified"):
            table.add_column(title, justify="right" if title == "size" else "left", no_wrap=title != "")
        before = None
        for state in self._states:
            mark, style = _LOOKS[state.state]
            name, _, version = state.name.rpartition("@")
            table.add_row(
                Text(state.title if name != before else "", style="bold"),
                version,
                Text(f"{mark} {state.state}", style=style),
                Text(state.detail, style="" if state.state in ("lacking", "broken") else "dim"),
                ", ".join(state.modes) or Text("-", style="dim"),
                state.python or Text("-", style="dim"),
                _size(state),
                state.verified or "-",
            )
            before = name
        yield table
        yield Text()
        yield from self._cures()
        yield Text(f"environments lie in {self._folder}", style="dim")

    def _cures(self) -> RenderResult:
        """Each command once."""
        cures: dict[str, list[str]] = {}
        for state in self._states:
            if state.state in ("lacking", "broken"):
                cures.setdefault(state.cure, []).append(state.name)
        for cure, names in cures.items():
            yield Text.assemble(("cure: ", "yellow"), (cure, "cyan"), f"  {', '.join(names)}")
        if any(state.state == "available" for state in self._states):
            cheap = any(state.state == "available" and state.cheap for state in self._states)
            which = "--cheap" if cheap else "NAME@VERSION"
            yield Text.assemble("next: ", (f"timetrial frameworks install {which}", "cyan"))


def _size(state: State) -> str:
    """'~1.5 GB' is what environment.toml says, '1.5 GB' what was measured here."""
    if not state.size_mb:
        return "-"
    about = "" if state.measured else "~"
    return f"{about}{state.size_mb / 1000:.1f} GB" if state.size_mb >= 1000 else f"{about}{state.size_mb} MB"
