"""How long what is left takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass
class Stage:
    """Launches of one kind."""

    launches: int
    seconds: float | None = None  # what all of them were thought to take
    ended: int = 0  # of them, with those that were left out
    made: int = 0  # of them
    began_s: float | None = None  # by the monotonic clock
    took_s: float = 0.0  # until the last of them ended

    def scale(self, launches: int) -> None:
        """To so many launches, each as long as was thought."""
        if self.seconds is not None and self.launches:
            self.seconds *= launches / self.launches
        self.launches = launches

    def left_s(self) -> float | None:
        """At the pace of those that were made, or else as was thought. None: nobody knows."""
        left = max(self.launches - self.ended, 0)
        if not left:
            return 0.0
        if self.made:
            return self.took_s / self.made * left
        return None if self.seconds is None else self.seconds / self.launches * left


class Plan:
    """Stages, one after the other. Each has its own pace: what a proof took says nothing of learning."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {"": Stage(0)}
        self._current = self._stages[""]
        self._begin(self._current)

    def set(self, stages: Mapping[Any, Stage]) -> None:
        """By name, instead of what was planned. The first one begins."""
        self._stages = {name: replace(stage) for name, stage in stages.items()}
        self._current = next(iter(self._stages.values()))
        self._begin(self._current)

    def begin(self, name: str, launches: int | None = None) -> None:
        """This stage follows, with as many launches as were planned or as it turned out. What is left of the
        one before is not to come any more."""
        self._current.launches = self._current.ended
        self._current = self._stages.setdefault(name, Stage(0))
        if launches is not None:
            self._current.scale(launches)
        self._begin(self._current)

    def more(self, launches: int) -> None:
        """So many beyond those that were planned, of the stage that is under way."""
        self._current.scale(self._current.launches + launches)

    def ended(self, *, made: bool) -> None:
        """One more; not made: it was left out."""
        stage = self._current
        stage.ended += 1
        if made:
            stage.made += 1
            stage.took_s = time.monotonic() - (stage.began_s or 0.0)

    @property
    def launches(self) -> int:
        """All that are planned."""
        return sum(stage.launches for stage in self._stages.values())

    @property
    def done(self) -> int:
        """Those that ended or were left out."""
        return sum(stage.ended for stage in self._stages.values())

    def left_s(self) -> float | None:
        """Seconds. None: nobody knows."""
        left = [stage.left_s() for stage in self._stages.values()]
        return None if None in left else sum(one for one in left if one is not None)

    @staticmethod
    def _begin(stage: Stage) -> None:
        if stage.began_s is None:
            stage.began_s = time.monotonic()
