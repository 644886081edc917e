"""The plug-in's section at the end of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from timetrial.testing.judgement import Judgement
from timetrial.testing.suite import LEVEL, corrected

_COLORS = {"passed": {"green": True}, "failed": {"red": True}, "warned": {"yellow": True}}


def write_summary(terminal: pytest.TerminalReporter, judgements: Sequence[Judgement]) -> None:
    """What was judged, line by line, and what was not."""
    judged = [one for one in judgements if one.timing and one.status != "not judged"]
    warned = [one for one in judgements if one.status == "warned"]
    left_out = Counter(one.words for one in judgements if one.status == "not judged")
    if not judged and not left_out:
        return
    terminal.section("bench")
    for one in judged:
        terminal.write_line(f"{one.status.upper()} {one.test}: {one.words}", **_COLORS.get(one.status, {}))
    for line in _overruled(judged):
        terminal.write_line(line, yellow=True)
    if judged:
        undecided = f", {len(warned)} undecided (--bench-strict fails them)" if warned else ""
        terminal.write_line(f"{_count(len(judged))} judged{undecided}")
    for reason, count in left_out.items():
        terminal.write_line(f"{_count(count)} not judged ({reason})", yellow=True)


def _overruled(judged: Sequence[Judgement]) -> list[str]:
    """Failures that do not survive the correction over all assertions there were: several in one test can be
    more than were expected when it failed."""
    tested = [one for one in judged if one.p_value is not None]
    failed = [one.status == "failed" and one.p_value is not None and one.p_value < 1 for one in tested]
    if not any(failed):
        return []
    chances = corrected([one.p_value for one in tested if one.p_value is not None])
    return [
        f"WARNING {one.test}: its failure may be an accident: over all {len(tested)} timing assertions of "
        f"this session the chance of one is {chance:.2g}, more than {LEVEL:g}. Run it alone"
        for one, fails, chance in zip(tested, failed, chances, strict=True)
        if fails and chance > LEVEL
    ]


def _count(number: int) -> str:
    return f"{number} timing assertion{'' if number == 1 else 's'}"
