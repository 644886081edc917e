"""How long what is left takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """Launches of one kind that are planned."""

    launches: int
    seconds: float | None = None  # what all of them are thought to take


class _Course:
    """How far a stage has come."""

    def __init__(self, stage: Stage):
        self.launches = stage.launches
        self.ended = 0  # of them, with those that were left out
        self._each_s = stage.seconds / stage.launches if stage.seconds and stage.launches else None
        self._made = 0
        self._began_s = self._last_s = 0.0  # by the monotonic clock

    def begin(self) -> None:
        self._began_s = time.monotonic()

    def made(self) -> None:
        self.ended += 1
        self._made += 1
        self._last_s = time.monotonic()

    def left_s(self) -> float | None:
        """At the pace of those that were made, or else as was thought. None: nobody knows."""
        left = self.launches - self.ended
        if left <= 0:
            return 0.0
        each_s = (self._last_s - self._began_s) / self._made if self._made else self._each_s
        return None if each_s is None else each_s * left


class Plan:
    """Stages, one after the other. Each has its own pace: what a proof took says nothing of learning."""

    def __init__(self) -> None:
        self.set({"": Stage(0)})

    def set(self, stages: Mapping[Any, Stage]) -> None:
        """By name, instead of what was planned. The first one begins."""
        self._courses = {name: _Course(stage) for name, stage in stages.items()}
        self._current = next(iter(self._courses.values()))
        self._current.begin()

    def begin(self, name: str, launches: int | None = None) -> None:
        """This stage follows, with as many launches as were planned or as it turned out. What is left of the
        one before is not to come any more."""
        self._current.launches = self._current.ended
        self._current = self._courses.setdefault(name, _Course(Stage(0)))
        if launches is not None:
            self._current.launches = launches
        self._current.begin()

    def more(self, launches: int) -> None:
        """So many beyond those that were planned, of the stage that is under way."""
        self._current.launches += launches

    def made(self) -> None:
        """One more ended."""
        self._current.made()

    def left_out(self, launches: int) -> None:
        """So many are not made."""
        self._current.ended += launches

    @property
    def launches(self) -> int:
        """All that are planned."""
        return sum(one.launches for one in self._courses.values())

    @property
    def ended(self) -> int:
        """Those that were made or left out."""
        return sum(one.ended for one in self._courses.values())

    def left_s(self) -> float | None:
        """Seconds. None: nobody knows."""
        left = [one.left_s() for one in self._courses.values()]
        return None if None in left else sum(one for one in left if one is not None)
