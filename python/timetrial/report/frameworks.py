"""`timetrial frameworks list` and `check`, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.report.columns import Layout, Line

if TYPE_CHECKING:
    from timetrial.environments import State

_LOOKS = {
    "installed": ("●", "green"),
    "current": ("●", "green"),
    "available": ("○", "cyan"),
    "lacking": ("-", "yellow"),
    "broken": ("!", "bold red"),
}
_LAYOUT = Layout(("version", "state", "modes", "python", "size", "verified", ""), right=frozenset({4}))


class FrameworksReport:
    """A renderable: one line per version, grouped by framework; the cures that are not `install` below it."""

    def __init__(self, states: Sequence[State], folder: str):
        self._states = states
        self._folder = folder

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, then what to type."""
        yield from _LAYOUT.lines([_line(state) for state in self._states], options.max_width)
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


def _line(state: State) -> Line:
    """A version, below its framework."""
    mark, style = _LOOKS[state.state]
    cells = [
        (state.name.rpartition("@")[2], ""),
        (f"{mark} {state.state}", style),
        (", ".join(state.modes) or "-", "" if state.modes else "dim"),
        (state.python or "-", "" if state.python else "dim"),
        (_size(state), ""),
        (state.verified or "-", ""),
    ]
    detail = (state.detail, "" if state.state in ("lacking", "broken") else "dim")
    return Line(cells, detail if state.detail else None, section=state.title)


def _size(state: State) -> str:
    """'~1.5 GB' is what environment.toml says, '1.5 GB' what was measured here."""
    if not state.size_mb:
        return "-"
    about = "" if state.measured else "~"
    return f"{about}{state.size_mb / 1000:.1f} GB" if state.size_mb >= 1000 else f"{about}{state.size_mb} MB"
