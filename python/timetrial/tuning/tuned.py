"""What tuning found: every candidate that was measured, and the race that the best of them had to win."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.analysis.taken_home import RowSettings
from timetrial.records.model import CaseRecord

if TYPE_CHECKING:
    from rich.console import RenderableType

    from timetrial.results.race import Race

LOOK_SD = 0.02  # by which looks at one candidate differ, of ln(ratio): they are fresh launches


@dataclass(frozen=True)
class Trial:
    """One candidate that was measured."""

    case: str  # id
    point: Mapping[str, str]  # what was chosen; '-': not asked for
    # In each heat that it rode in, ln of its step time over the base's there, or of the time of a sample
    # where batch sizes differ. Empty: it failed.
    looks: tuple[float, ...]
    outcome: str  # as of a row: ok, unavailable, wrong ...
    reason: str | None = None  # why it has no ratio

    @property
    def log_ratio(self) -> float:
        """The mean of its looks."""
        return sum(self.looks) / len(self.looks)

    @property
    def ratio(self) -> float | None:
        """Of times, its over the base's; None: it has none."""
        return math.exp(self.log_ratio) if self.looks else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "case": self.case,
            "point": dict(self.point),
            "ratio": self.ratio,
            "looks": len(self.looks),
            "outcome": self.outcome,
            "reason": self.reason,
        }

    @property
    def words(self) -> str:
        """'onednn threads=2'."""
        words = [value if name == "backend" else f"{name}={value}" for name, value in self.point.items()]
        return " ".join(one for one in words if not one.endswith("=-"))


def ranked(trials: Iterable[Trial]) -> list[Trial]:
    """The fastest first, each by a standard error more than it seems to take: of many that were looked at
    once, the first was lucky."""
    timed = [one for one in trials if one.looks]
    return sorted(timed, key=lambda one: one.log_ratio + LOOK_SD / math.sqrt(len(one.looks)))


class Tuned:
    """The winner is the best candidate if it won its race against the base, and otherwise the base."""

    def __init__(self, folder: Path, trials: Sequence[Trial], candidates: int, race: Race | None):
        self.folder = folder  # that has the records of heats and race
        self.trials = list(trials)  # in the order in which they were measured; the first is the base
        self.candidates = candidates  # how many there were
        self.race = race  # of the best candidate against the base; None: no other candidate could be measured

    @property
    def verdict(self) -> str | None:
        """Of the race: better, same, worse, inconclusive; None: there was none, or it could not be judged."""
        return None if self.race is None else self.race.verdict

    @property
    def best(self) -> Trial | None:
        """The fastest beside the base; None: none other is ok."""
        return next(iter(ranked(self.trials[1:])), None)

    @property
    def ranking(self) -> list[Trial]:
        """The fastest first, those without a time last."""
        return [*ranked(self.trials), *(one for one in self.trials if not one.looks)]

    @cached_property
    def winner(self) -> Trial:
        """Whom to use."""
        best = self.best
        return best if best is not None and self.verdict == "better" else self.trials[0]

    @property
    def settings(self) -> RowSettings:
        """The winner's, to take home: environment(), to_toml(), command()."""
        return RowSettings([], self._case(self.winner.case))

    def _case(self, name: str) -> CaseRecord:
        from timetrial.results.results import Results

        for folder in sorted((self.folder / "heats").iterdir()):
            for row in Results(folder).rows:
                if row.case.id == name:
                    return row.case
        raise LookupError(name)

    def sentence(self) -> str:
        """The answer in one sentence."""
        base, best = self.trials[0].words, self.best
        looked = f"{len(self.trials)} of {self.candidates} measured"
        if best is None:
            return f"{base} it stays: no other candidate could be measured ({looked})"
        by = "a race by samples per second" if "batch_size" in best.point else "a race"
        if self.verdict == "better":
            return f"{best.words} is faster than {base}, by {by} ({looked})"
        if self.verdict == "same":
            return f"{base} is as good: {best.words}, best of the others, is the same by {by} ({looked})"
        if self.verdict == "worse":
            return f"{base} is best: {best.words}, the best of the others, is slower by {by} ({looked})"
        return f"{base} it stays: a race with {best.words}, the best of the others, could not tell ({looked})"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "verdict": self.verdict,
            "winner": self.winner.to_json(),
            "candidates": self.candidates,
            "trials": [one.to_json() for one in self.trials],
            "race": None if self.race is None else self.race.to_json(),
            "settings": self.settings.environment(),
            "command": self.settings.command(),
        }

    def table(self) -> RenderableType:
        """For rich."""
        from timetrial.report.tuned import tuned_table

        return tuned_table(self)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)
