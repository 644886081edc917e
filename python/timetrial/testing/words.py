"""How the plug-in says what a race found: one line for the summary, several for a test that fails."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timetrial.races import Duel, Race
    from timetrial.statistics.verdict import Rule
    from timetrial.testing.engine import Ran


def duel_words(race: Race, duel: Duel) -> str:
    """'after against before: 4.9 % slower [4.1, 5.6], 10 pairs, confirmed'."""
    from timetrial.report.race import verdict_words

    facts = [f"{duel.challenger} against {duel.base}: {verdict_words(race, duel)}"]
    if duel.effect is not None:
        facts.append(f"{duel.pairs} pairs" + (f" and {duel.void} void" if duel.void else ""))
    if duel.confirmed:
        facts.append("confirmed")
    return ", ".join(facts)


def out_of_time(race: Race) -> bool:
    """Whether its budget ended it."""
    return race.end is not None and race.end.stop_reason == "budget"


def advice(race: Race, duel: Duel, adjusted: float, rule: Rule) -> str:
    """What to change so that a duel is decided the next time."""
    if out_of_time(race) and (wanted := _budget_words(race, duel, rule)):
        return wanted
    min_effect = rule.min_effect
    if duel.verdict == "worse" and duel.confirmed:
        return (
            f"Confirmed, but among this session's timing assertions an accident like this has a chance of "
            f"{adjusted:.2g}: run this test alone"
        )
    if duel.confirmed is False:
        return f"{duel.reason}: measure again"
    coarser = math.ceil(100 * (duel.minimal_detectable_effect or 0)) / 100
    if min_effect < coarser <= 1:
        return (
            "Measure on a quieter machine, give a step more work, or judge more coarsely: "
            f"max_slowdown={coarser:g}"
        )
    return "Measure on a quieter machine, or give a step more work"


def _budget_words(race: Race, duel: Duel, rule: Rule) -> str:
    """The time that would decide it, by the scatter that was seen; "": no time would."""
    spent = race.seconds or 0.0
    if not duel.pairs or duel.effect is None:
        return f"Its time was over before {rule.looks[0]} pairs: --bench-budget={_minutes(3 * spent)} may do"
    effect, pairs = duel.effect, duel.pairs
    # The half width that would show it to be the same, or different: on logarithms, that of few pairs shrinks
    # at least with the square root of their number.
    half = (math.log1p(effect.high) - math.log1p(effect.low)) / 2
    seen = abs(math.log1p(effect.estimate))
    room = [math.log1p(rule.equivalence) - seen, seen if seen >= math.log1p(rule.min_effect) else 0.0]
    needed = pairs * (half / max(room)) ** 2 if max(room) > 0 else math.inf
    look = next((one for one in rule.looks if one >= max(needed, pairs)), None)
    if look is None:
        return ""
    # What is worse is raced a second time.
    total = spent / pairs * look * (2 if seen == room[1] or duel.verdict == "worse" else 1)
    first = "before a second race could confirm it" if duel.verdict == "worse" else f"after {pairs} pairs"
    return (
        f"Its time was over {first}: about {_minutes(1.3 * total)} would decide it "
        f"(--bench-budget={_minutes(1.3 * total)}, or the marker's budget)"
    )


def _minutes(seconds: float) -> str:
    """'4m', rounded up."""
    return f"{max(1, math.ceil(seconds / 60))}m"


def with_pytests_cure(text: str) -> str:
    """What was not found may lie where nobody imports from."""
    if "there is no module" not in text:
        return text
    return (
        f"{text} Contenders import from pytest's rootdir and from what this process has on sys.path; for a "
        "package in a folder src, write `pythonpath = src` into pytest's configuration, or install it."
    )


def failed_words(ran: Ran) -> str:
    """Why a launch is no success."""
    return f"{ran.name}: {ran.outcome}" + (f": {ran.reason.strip()}" if ran.reason else "")


def evidence(ran: Ran) -> str:
    """Where the records lie, and the command that makes them again, laid out as a race's."""
    from timetrial.records.files import near

    return f"  records     {near(Path(ran.folder))}" + (f"\n  again       {ran.again}" if ran.again else "")
