"""What became of one assertion: told by the summary, by JUnit's properties and across pytest-xdist."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Assertion = Literal["not slower", "race", "learns", "memory", "growth"]
# raced: bench.race(), which leaves the judgement to the test.
# undecided: a race ended without an answer, which --bench-strict fails.
Status = Literal["passed", "failed", "undecided", "raced", "not judged"]
NOT_DECIDED = "not decided"  # how pytest counts a test in which an assertion is undecided
PROPERTY = "bench"  # its name among a report's user_properties
COST = "bench-seconds"  # what one call of the fixture took


@dataclass(frozen=True)
class Judged:
    """What a race said, for the table of the summary. The effect and its interval are fractions."""

    side: str
    base: str
    metric: str
    verdict: str | None
    effect: Sequence[float] | None  # estimate, low, high
    pairs: int
    seconds: float


@dataclass(frozen=True)
class Judgement:
    """One assertion of one test."""

    test: str  # pytest's id of the test
    assertion: Assertion
    status: Status
    words: str  # what was found, or why nothing was judged
    p_value: float | None = None  # of a timing assertion that was judged; see suite.py
    judged: Judged | None = None
    entry: dict[str, Any] | None = None  # its line of a history, where one is kept

    @property
    def timing(self) -> bool:
        """Whether it is about a time, and so needs a race."""
        return self.assertion in ("not slower", "race", "growth")

    def as_property(self) -> tuple[str, str]:
        """An entry of a report's user_properties."""
        return PROPERTY, json.dumps(asdict(self))


def judgements_of(user_properties: Iterable[tuple[str, object]]) -> list[Judgement]:
    """The judgements among a report's user_properties."""
    return [_judgement(json.loads(str(value))) for name, value in user_properties if name == PROPERTY]


def seconds_of(user_properties: Iterable[tuple[str, object]]) -> float | None:
    """What the fixture spent in a test; None: nothing was asked of it."""
    found = [float(str(value)) for name, value in user_properties if name == COST]
    return sum(found) if found else None


def _judgement(facts: dict[str, Any]) -> Judgement:
    judged = facts.pop("judged", None)
    return Judgement(**facts, judged=Judged(**judged) if judged else None)
