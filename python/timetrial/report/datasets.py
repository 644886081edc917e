"""`timetrial datasets list` and `check`, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.report.columns import Layout, Line

if TYPE_CHECKING:
    from timetrial.datasets import State

_LOOKS = {"ready": ("●", "green"), "missing": ("○", "cyan"), "yours": ("-", "dim")}
_LAYOUT = Layout(("data set", "state", "shape", "classes", "samples", "size", ""), right=frozenset({3, 4, 5}))


class DatasetsReport:
    """A renderable: one line per data set; below it what brings those that are missing, and the licences."""

    def __init__(self, states: Sequence[State], folder: str):
        self._states = states
        self._folder = folder

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, then what to type."""
        yield from _LAYOUT.lines([_line(state) for state in self._states], options.max_width)
        yield Text()
        licences: dict[str, list[str]] = {}
        for state in self._states:
            if state.licence:
                licences.setdefault(state.licence, []).append(state.name)
        for licence, names in licences.items():
            yield Text.assemble((f"licence of {', '.join(names)}: ", "dim"), (licence, "dim"))
        for cure in dict.fromkeys(state.cure for state in self._states if state.state == "missing"):
            yield Text.assemble("next: ", (cure, "cyan"))
        if any(state.state == "yours" for state in self._states):
            yield Text.assemble("yours: in a run dataset_folder=FOLDER, which has the files named above")
        yield Text(f"installed data sets lie in {self._folder}", style="dim")


def _line(state: State) -> Line:
    mark, style = _LOOKS[state.state]
    cells = [
        (state.name, ""),
        (f"{mark} {state.state}", style),
        ("x".join(map(str, state.shape)) or "-", ""),
        (str(state.classes or "-"), ""),
        (" + ".join(f"{count:,}" for count in state.samples) or "-", ""),
        (f"{state.bytes / 1e6:.0f} MB" if state.bytes else "-", ""),
    ]
    detail = state.words if state.state == "ready" else f"{state.words}: {state.detail}"
    return Line(cells, (detail, "dim"))


class CheckReport:
    """A renderable: one data set that was read, as `check` found it."""

    def __init__(self, found: Mapping[str, Any]):
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line that says whether it is sound, then a line for each thing that was found."""
        name, problem, table = (self._found[key] for key in ("name", "problem", "dataset"))
        if problem is not None:
            yield Text.assemble(f"{name}: ", ("not sound", "bold red"), f": {problem}")
            return
        yield Text.assemble(f"{name}: ", ("sound", "green"))
        if self._found["licence"]:
            yield Text(f"  licence: {self._found['licence']}")
        for key, value in {**table, **facts_in_words(table["checks"])}.items():
            if not isinstance(value, dict | list):
                yield Text(f"  {key.replace('_', ' ')}: {value}")
        for file, digest in table.get("files_sha256", {}).items():
            yield Text(f"  sha256 of {file}: {digest}", style="dim")


def facts_in_words(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a record has under `checks` of a data set, by what it is about."""
    said: dict[str, str] = {}
    if not facts:  # a record of a version that looked at none
        return said
    parts = {"to train on": facts["train"], "to test on": facts["test"]}
    if all("classes" in one for one in parts.values()):
        each = " and ".join(f"{_span(one['classes'])} {words}" for words, one in parts.items())
        said["samples of a class"] = each
        empty = [number for number, count in enumerate(facts["train"]["classes"]) if count == 0]
        if empty:
            said["classes without a sample to train on"] = _few(empty)
    said["samples that come twice"] = " and ".join(
        f"{one['duplicates']:,} of {one['samples']:,} {words}" for words, one in parts.items()
    )
    said["test samples that are trained on"] = f"{facts['test_in_train']:,} of {facts['test']['samples']:,}"
    return said


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _few(numbers: Sequence[int]) -> str:
    words = [str(one) for one in numbers]
    return ", ".join(words) if len(words) <= 6 else f"{', '.join(words[:5])} and {len(words) - 5} more"
