"""What tuning found, for people: the best candidates, the verdict, and how to take it home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.records.files import near
from timetrial.report.columns import Grid

if TYPE_CHECKING:
    from timetrial.tuning.tuned import Trial, Tuned

MOST = 10  # candidates that are shown


def tuned_table(tuned: Tuned) -> RenderableType:
    """The fastest first; the base has a ratio of 1."""
    shown = tuned.ranking[:MOST]
    rows = [[one.words, _ratio(one, tuned), _looks(one, tuned), _state(one)] for one in shown]
    lines: list[RenderableType] = [
        Grid(("candidate", "vs base", "looks", ""), rows, wraps=any(row[-1] for row in rows))
    ]
    if len(tuned.trials) > MOST:
        lines.append(Text(f"... and {len(tuned.trials) - MOST} that were slower or failed", style="dim"))
    lines.append(Text(tuned.sentence(), style="bold green" if tuned.verdict == "better" else "bold"))
    if tuned.race is not None:
        lines.append(Text(f"  race: {near(tuned.race.folder)}"))
    lines.append(Text(f"  again: {tuned.settings.command()}"))
    lines.append(Text(f"  records: {near(tuned.folder)}"))
    return Group(*lines)


def _ratio(trial: Trial, tuned: Tuned) -> str:
    if trial is tuned.trials[0]:
        return "base"
    return "-" if trial.ratio is None else f"{trial.ratio:.2f}x"


def _looks(trial: Trial, tuned: Tuned) -> str:
    """The base is there in all heats."""
    return "" if trial is tuned.trials[0] or not trial.looks else str(len(trial.looks))


def _state(trial: Trial) -> str:
    return "" if trial.ratio is not None else f"{trial.outcome}: {trial.reason}"
