"""The plug-in's section at the end of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from timetrial.testing.judgement import Judgement
from timetrial.testing.marker import TIMES
from timetrial.testing.suite import LEVEL, corrected

TITLES = ("result", "side", "base", "verdict", "effect", "pairs", "seconds", "test")
_DEAREST = 3  # tests that are named with what they cost
_COLORS = {"passed": {"green": True}, "failed": {"red": True}, "undecided": {"yellow": True}}


def write_summary(
    terminal: pytest.TerminalReporter,
    judgements: Sequence[Judgement],
    costs: Mapping[str, float],
    troubles: Sequence[str],
) -> None:
    """What was judged as a table, what needs attention line by line, what was not judged, what it cost."""
    judged = [one for one in judgements if one.timing and one.status != "not judged"]
    open_ones = [one for one in judgements if one.status == "undecided"]
    left_out = Counter(one.words for one in judgements if one.status == "not judged")
    if not judged and not left_out and not costs:
        return
    terminal.section("bench")
    lines = [(one.status, _cells(one)) for one in judged if one.judged is not None]
    widths = [max(len(cells[place]) for _, cells in [("", TITLES), *lines]) for place in range(len(TITLES))]
    for status, cells in [("", TITLES), *lines] if lines else []:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        terminal.write_line("  ".join(padded).rstrip(), **_COLORS.get(status, {}))
    for one in judged:
        if one.status in ("failed", "undecided") or one.judged is None:
            terminal.write_line(
                f"{one.status.upper()} {one.test}: {one.words}", **_COLORS.get(one.status, {})
            )
    for line in _overruled(judged):
        terminal.write_line(line, yellow=True)
    if judged:
        undecided = f", {len(open_ones)} undecided (--bench-strict fails them)" if open_ones else ""
        terminal.write_line(f"{_count(len(judged))} judged{undecided}")
    for reason, count in left_out.items():
        terminal.write_line(f"{_count(count)} not judged ({reason})", yellow=True)
    for trouble in troubles:
        terminal.write_line(f"WARNING --bench-json: {trouble}", yellow=True)
    if costs:
        terminal.write_line(_cost_words(costs))


def _cells(one: Judgement) -> tuple[str, ...]:
    found = one.judged
    assert found is not None
    effect = "-"
    if found.effect is not None:
        estimate, low, high = (100 * value for value in found.effect)
        metric = "" if found.metric == TIMES[0] else f"{found.metric} "
        effect = f"{metric}{estimate:+.1f} % [{low:+.1f}, {high:+.1f}]"
    verdict = found.verdict or "not judged"
    pairs, seconds = str(found.pairs), f"{found.seconds:.1f}"
    return (one.status, found.side, found.base, verdict, effect, pairs, seconds, one.test)


def _cost_words(costs: Mapping[str, float]) -> str:
    """'measuring took 41.0 s in 3 tests: test_a 30.2 s, test_b 8.1 s, ...'"""
    most = sorted(costs, key=costs.__getitem__, reverse=True)[:_DEAREST]
    told = ", ".join(f"{test} {costs[test]:.1f} s" for test in most) + (
        ", ..." if len(costs) > _DEAREST else ""
    )
    tests = "1 test" if len(costs) == 1 else f"{len(costs)} tests"
    return f"measuring took {sum(costs.values()):.1f} s in {tests}: {told}"


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
