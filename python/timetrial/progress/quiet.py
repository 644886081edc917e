"""Who is told what is going on; this one says nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from timetrial.progress.left import Plan, Stage
from timetrial.records.model import LaunchRecord
from timetrial.report.numbers import seconds


class QuietProgress:
    """Keeps count, and says nothing."""

    def __init__(self) -> None:
        self.plan = Plan()

    def __enter__(self) -> QuietProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def total(self, launches: int) -> None:
        """So many launches of one kind are planned."""
        self.stages({"": Stage(launches)})

    def stages(self, stages: Mapping[Any, Stage]) -> None:
        """These are planned, by name, in this order."""
        self.plan.set(stages)

    def begin(self, stage: str, launches: int | None = None) -> None:
        """This stage follows, and what is said from here on is of its launches: so many, or as planned."""
        self.plan.begin(stage, launches)

    def more(self, launches: int) -> None:
        """So many beyond those that were planned, of the stage that is under way."""
        self.plan.more(launches)

    def next(self, words: str) -> None:
        """This one starts now."""

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: there is no record of it."""
        self.plan.made()

    def left_out(self, launches: int = 1) -> None:
        """These are not launched: there is a record of an earlier session, or their case failed."""
        self.plan.left_out(launches)

    def left(self) -> str:
        """`, about 4 min left`; "" where nobody knows, or nothing is."""
        left_s = self.plan.left_s()
        return f", about {seconds(left_s)} left" if left_s else ""


def failure(record: LaunchRecord | None) -> str:
    """Which launch failed, and how; "" where none did."""
    if record is None or record.outcome == "ok":
        return ""
    first = (record.reason or "").strip().splitlines()
    return f"{record.case} {record.purpose}: {record.outcome}: {first[0] if first else ''}"
