"""What is said of a race while it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from timetrial.analysis.outlook import Outlook, outlook
from timetrial.records.race import Stage
from timetrial.report.numbers import percent_interval, seconds

if TYPE_CHECKING:
    from timetrial.races.state import RaceState


def progress_words(state: RaceState, stage: Stage, waiting: Sequence[str]) -> str:
    """'pair 3 · so far +9.3 % [+1.2, +18.0] · about 2 more pairs, 25 s': before a pair starts."""
    number = len(state.log_ratios(waiting[0], stage)) + (state.under_way is not None) + 1
    words = [f"pair {number}" if stage == "judge" else f"confirming, pair {number}"]
    seen = [outlook(state.counting(stage), one, state.rule) for one in waiting]
    words += [f"so far {percent_interval(one.estimate, one.low, one.high)}" for one in seen if one]
    if last := max((one for one in seen if one), key=lambda one: one.needed or math.inf, default=None):
        words.append(needed_words(last))
    return " · ".join(words)


def needed_words(found: Outlook) -> str:
    """'about 2 more pairs, 25 s', if the rest are like those so far."""
    if found.needed is None:
        return "no number of pairs is likely to decide this"
    more = found.needed - found.pairs
    time = found.seconds_left
    return f"about {more} more pair{'s' if more > 1 else ''}" + (f", {seconds(time)}" if time else "")
