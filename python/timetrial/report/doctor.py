"""`timetrial doctor`, for people: what works, then what one could have besides, by what one would gain."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.report.numbers import memory, significant

if TYPE_CHECKING:
    from timetrial.experiment.doctor import Check, Diagnosis
    from timetrial.noise import NoiseFinding

WIDEST = 80
_KINDS = {
    "backend": "backends",
    "framework": "frameworks",
    "library": "libraries",
    "dataset": "data sets",
    "counter": "counters",
}
_OTHERS = "also"
_FEW = 2  # things with a cure of their own; of more, the list says how


class DoctorReport:
    """A renderable: the machine, what is ready by kind, what is broken, what one could have, advice."""

    def __init__(self, diagnosis: Diagnosis):
        self._diagnosis = diagnosis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """At most 80 columns wide."""
        width = min(options.max_width, WIDEST)
        for words, style in self._machine():
            yield from _wrapped(words, width, style=style)
        checks = self._diagnosis.checks
        yield Text()
        if self._diagnosis.healthy:
            yield Text("timetrial works. Ready:", style="bold green")
        else:
            yield Text("timetrial does not work here.", style="bold red")
        yield from _ready([one for one in checks if one.state == "ready"], width)
        for check in checks:
            if check.state == "broken":
                yield from _wrapped(f"broken  {check.name}: {check.detail}", width, 8, "bold red")
                yield from _command(check.cure, width)
        missing = [one for one in checks if one.state == "missing"]
        if missing:
            yield Text()
            yield Text("Nothing more is needed. If you want", style="bold")
        for gain in dict.fromkeys(one.gain for one in missing):
            yield from _could_have(gain, [one for one in missing if one.gain == gain], width)
        yield from _noise(self._diagnosis.noise, width)
        if self._diagnosis.advice:
            yield Text()
        for line in self._diagnosis.advice:
            yield from _wrapped(f"! {line}", width, 2, "yellow")

    def _machine(self) -> Iterator[tuple[str, str]]:
        diagnosis, machine = self._diagnosis, self._diagnosis.machine
        yield (
            f"{machine['cpu']} · {machine['usable_cpus']} of {machine['cpus']} CPUs · "
            f"{memory(machine['memory_bytes'])} · Linux {machine['kernel']} · Python {machine['python']}",
            "bold",
        )
        if diagnosis.clock_ns is not None:
            peaks = ", ".join(
                f"{significant(flops / 1e9)} GFLOP/s with {threads} thread{'s' if threads != '1' else ''}"
                for threads, flops in diagnosis.peak_flops.items()
            )
            yield f"reading the clock costs {diagnosis.clock_ns:.0f} ns · measured f32 peak: {peaks}", ""
        if diagnosis.two_threads is not None:
            yield f"two threads do {diagnosis.two_threads:.2f} times the work of one, in the same time", ""


def _ready(checks: Sequence[Check], width: int) -> Iterator[Text]:
    """A line per kind: names, with what tells them apart. Paths are in the JSON."""
    found: dict[str, list[str]] = {}
    for check in checks:
        first, _, rest = check.name.partition(" ")
        if first in _KINDS:
            found.setdefault(_KINDS[first], []).append(f"{rest}{_which(first, check.detail)}")
        elif not check.detail.startswith("/"):  # programs of ours: that timetrial works says it
            found.setdefault(_OTHERS, []).append(check.name)
    indent = max(map(len, found), default=0) + 4
    for kind, names in found.items():
        yield from _wrapped(f"  {kind.ljust(indent - 4)}  {', '.join(names)}", width, indent)


def _which(kind: str, detail: str) -> str:
    """' (avx512)', ' 0.3.21': of a backend or library that lies somewhere; the versions of a framework."""
    if kind == "framework":
        return f" {detail.replace(', ', ' / ')}"
    if kind == "library":
        version = detail.rpartition(", version ")[2] if ", version " in detail else ""
        return f" {version}" if version else ""
    isa = detail.partition(":")[0].partition(", ")[2]
    return f" ({isa})" if isa else ""


def _could_have(gain: str, checks: Sequence[Check], width: int) -> Iterator[Text]:
    """What is missing for it, and the one command; of many libraries, where it says how."""
    yield from _wrapped(f"  {gain}:", width, 4, "cyan")
    names = [one.name.removeprefix("library ") for one in checks]
    cures = list(dict.fromkeys(one.cure for one in checks if one.cure))
    if gain and len(cures) > _FEW and all(one.name.startswith("library ") for one in checks):
        yield from _wrapped(f"    {', '.join(names)}", width, 4)
        yield from _command("timetrial list libraries", width)
        return
    for one, name in zip(checks, names, strict=True):
        yield from _wrapped(f"    {name}: {one.detail}", width, 6)
    for cure in cures:
        yield from _command(cure, width)


def _noise(findings: Sequence[NoiseFinding], width: int) -> Iterator[Text]:
    """What was seen, a line each, what it means, and advice where there is some."""
    if findings:
        yield Text()
        yield Text("What makes timings restless here:", style="bold")
    for one in findings:
        seen = "cannot be told" if one.seen is None else one.seen
        yield from _wrapped(f"  {one.name}: {seen} ({one.means})", width, 4)
        if one.advice is not None:
            yield from _wrapped(f"    ! {one.advice}", width, 6, "yellow")


def _command(cure: str | None, width: int) -> Iterator[Text]:
    if cure:
        yield from _wrapped(f"      {cure}", width, 8, "bold")


def _wrapped(words: str, width: int, indent: int = 0, style: str = "") -> Iterable[Text]:
    """Lines that fit, the later ones behind `indent`."""
    start = words[: len(words) - len(words.lstrip())]
    lines = textwrap.wrap(
        words.strip(), width, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False
    )
    return [Text(line, style=style) for line in lines]


def to_text(diagnosis: Diagnosis, width: int = 120) -> str:
    """Without colors."""
    console = Console(
        file=io.StringIO(), width=width, color_system=None, highlight=False, force_jupyter=False
    )
    console.print(DoctorReport(diagnosis))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.rstrip("\n")
