"""The setting `counters`: whether counters of processors and kernel, and energy, are read at the borders of
the steady part.

They are where nothing is timed, unless somebody asks for `off`; where steps are timed only if it is asked,
because counters cost about a microsecond whenever a thread gets a processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timetrial.control.sampling import UNTIMED
from timetrial.records.model import Counter, Purpose, Setting

NAME = "counters"


def are_wanted(settings: Mapping[str, str], purpose: Purpose) -> bool:
    """In a launch for this purpose."""
    asked = settings.get(NAME)
    return purpose in UNTIMED if asked is None else asked == "on"


def judge(asked: str, counters: Sequence[Counter]) -> Setting:
    """By what was counted."""
    counted = [one.name for one in counters if one.per_step is not None]
    kept = bool(counted) if asked == "on" else not counters
    return Setting(
        name=NAME,
        asked=asked,
        effective="on" if counted else "off",
        how_read=f"counted: {', '.join(counted)}" if counted else "nothing was counted",
        status="applied" if kept else "adjusted",
    )
