"""What is said of a race while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.analysis.outlook import Outlook, outlook
from timetrial.records.race import Stage
from timetrial.report.numbers import seconds

if TYPE_CHECKING:
    from timetrial.races.state import RaceState


def progress_words(state: RaceState, stage: Stage, waiting: Sequence[str]) -> str:
    """'pair 3 · so far +9.3 % [+1.2, +18.0] · about 2 more pairs, 25 s': before a pair starts."""
    number = len(state.counting(stage)) + (state.under_way is not None) + 1
    words = [f"pair {number}" if stage == "judge" else f"confirming, pair {number}"]
    seen = [outlook(state.counting(stage), one, state.rule) for one in waiting]
    words += [f"so far {ratio_words(one)}" for one in seen if one is not None]
    words += [needed_words(max(known, key=lambda one: one.needed or 0))] if (known := [one for one in seen if one]) else []
    return " · ".join(words)


def ratio_words(found: Outlook) -> str:
    """'+9.3 % [+1.2, +18.0]'."""
    estimate, low, high = (100 * value for value in (found.estimate, found.low, found.high))
    return f"{estimate:+.1f} % [{low:+.1f}, {high:+.1f}]"


def needed_words(found: Outlook) -> str:
    """'about 2 more pairs, 25 s', if the rest are like those so far."""
    if found.needed is None:
        return "no number of pairs is likely to decide this"
    more = found.needed - found.pairs
    time = found.seconds_left
    return f"about {more} more pair{'s' if more > 1 else ''}" + (f", {seconds(time)}" if time else "")
