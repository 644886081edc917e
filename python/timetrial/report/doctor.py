"""`timetrial doctor`, for people."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from timetrial.report.numbers import memory, significant

if TYPE_CHECKING:
    from timetrial.experiment.doctor import Diagnosis

_STYLES = {"ready": "green", "missing": "yellow", "broken": "bold red"}


class DoctorReport:
    """A renderable: machine, checks with their cures, advice."""

    def __init__(self, diagnosis: Diagnosis):
        self._diagnosis = diagnosis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line of machine, one per check."""
        diagnosis, machine = self._diagnosis, self._diagnosis.machine
        yield Text(
            f"{machine['cpu']} · {machine['usable_cpus']} of {machine['cpus']} CPUs · "
            f"{memory(machine['memory_bytes'])} · Linux {machine['kernel']} · Python {machine['python']}",
            style="bold",
        )
        if diagnosis.clock_ns is not None:
            peaks = ", ".join(
                f"{significant(flops / 1e9)} GFLOP/s with {threads} thread{'s' if threads != '1' else ''}"
                for threads, flops in diagnosis.peak_flops.items()
            )
            yield Text(f"reading the clock costs {diagnosis.clock_ns:.0f} ns · measured f32 peak: {peaks}")
        if diagnosis.two_threads is not None:
            yield Text(f"two threads do {diagnosis.two_threads:.2f} times the work of one, in the same time")
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for check in diagnosis.checks:
            detail = Text(check.detail)
            if check.cure:
                detail.append(f"\ncure: {check.cure}", style="cyan")
            table.add_row(Text(check.state, style=_STYLES[check.state]), check.name, detail)
        yield table
        for line in diagnosis.advice:
            yield Text(f"! {line}", style="yellow")


def to_text(diagnosis: Diagnosis, width: int = 120) -> str:
    """Without colors."""
    console = Console(
        file=io.StringIO(), width=width, color_system=None, highlight=False, force_jupyter=False
    )
    console.print(DoctorReport(diagnosis))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.rstrip("\n")
