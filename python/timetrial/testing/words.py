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
    if race.end is not None and race.end.extended:
        facts.append("in twice its budget, to confirm what it found")
    return ", ".join(facts)


def advice(race: Race, duel: Duel, adjusted: float, rule: Rule) -> str:
    """What to change so that a duel is decided the next time."""
    from timetrial.report.deciding import is_out_of_time, needed, pairs_words

    if is_out_of_time(race):
        found = needed(race, duel)
        if found is None and not duel.pairs:
            spent = race.seconds or 0.0
            budget = f"{max(1, math.ceil(3 * spent / 60))}m"
            return f"Its time was over before a pair had ended: --bench-budget={budget} may do"
        if found is not None and found.pairs <= rule.most_pairs:
            first = (
                "before a second race could confirm it"
                if duel.verdict == "worse"
                else f"after {pairs_words(race, duel)}"
            )
            return (
                f"Its time was over {first}: about {found.budget} would decide it "
                f"(--bench-budget={found.budget}, or the marker's budget)"
            )
    if duel.verdict == "worse" and duel.confirmed:
        return (
            f"Confirmed, but among this session's timing assertions an accident like this has a chance of "
            f"{adjusted:.2g}: run this test alone"
        )
    if duel.confirmed is False:
        return f"{duel.reason}: measure again"
    coarser = math.ceil(100 * (duel.minimal_detectable_effect or 0)) / 100
    if rule.min_effect < coarser <= 1:
        return (
            "Measure on a quieter machine, give a step more work, or judge more coarsely: "
            f"max_slowdown={coarser:g}"
        )
    return "Measure on a quieter machine, or give a step more work"


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
