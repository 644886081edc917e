"""The setting `samples.hz`: how often the supervisor looks at what a contender uses.

Launches in which nothing is timed are looked at unless somebody asks for 0; others only where it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timetrial.caps import caps
from timetrial.errors import InputError
from timetrial.records.model import Purpose, Setting

NAME = "samples.hz"
DEFAULT_HZ = 20
MOST_HZ = 1000
UNTIMED: tuple[Purpose, ...] = ("learning", "resources")
ENOUGH = 0.5  # of the looks that were asked for: a busy machine has no time for all


@dataclass(frozen=True)
class Looks:
    """How many there were, from the first to the last of them."""

    count: int = 0
    seconds: float = 0.0


def check(settings: Mapping[str, str]) -> None:
    """InputError: no such value."""
    word = settings.get(NAME)
    if word is not None and not (word.isdecimal() and int(word) <= MOST_HZ):
        raise InputError(f"{NAME}={word!r}: expected a whole number from 0 (never) to {MOST_HZ}")


def hz_of(settings: Mapping[str, str], purpose: Purpose) -> int | None:
    """Looks a second in a launch for this purpose; None: none. Under a cap on memory the proof is looked at
    too: it may be all that there is of the case."""
    asked = settings.get(NAME)
    is_capped_proof = purpose == "proof" and settings.get(caps.MEMORY, caps.NONE) != caps.NONE
    is_looked_at = purpose in UNTIMED or is_capped_proof
    return (DEFAULT_HZ if is_looked_at else None) if asked is None else int(asked) or None


def judge(asked: str, looks: Looks) -> Setting:
    """By the lines that there are."""
    hz = (looks.count - 1) / looks.seconds if looks.seconds > 0 else 0.0
    is_enough = looks.count > 0 and (looks.count <= 2 or hz >= ENOUGH * int(asked))
    kept = looks.count == 0 if asked == "0" else is_enough
    return Setting(
        name=NAME,
        asked=asked,
        effective=asked if kept else f"{hz:.3g}",
        how_read=f"{looks.count} lines of samples.tsv, of {looks.seconds:.1f} s",
        status="applied" if kept else "adjusted",
    )
