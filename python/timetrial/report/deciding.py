"""What would decide a race that was not decided, by the scatter of its own pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timetrial.report.numbers import seconds
from timetrial.statistics.verdict import DIFFERENT

if TYPE_CHECKING:
    from timetrial.results.race import Duel, Race

MARGIN = 1.2  # of the time: pairs do not take the same, nor scatter the same


@dataclass(frozen=True)
class Needed:
    """A race that would likely decide it."""

    pairs: int  # of its verdict, without those that confirm it
    seconds: float  # that it takes at most, proofs and confirmation included

    @property
    def budget(self) -> str:
        """'4m', rounded up."""
        return f"{max(1, math.ceil(self.seconds / 60))}m"


def needed(race: Race, duel: Duel) -> Needed | None:
    """None: no number of pairs is likely to, or there is no pair to judge by."""
    seen = race.outlook(duel.case)
    if seen is None:
        return None
    pairs = seen.pairs if duel.verdict in DIFFERENT else seen.needed
    if pairs is None:
        return None
    measured = sum(one.seconds or 0.0 for one in race.pairs)
    pair_s = seen.pair_s or (race.seconds or 0.0) / max(1, len(race.pairs))
    before = max(0.0, (race.seconds or 0.0) - (measured or pair_s * len(race.pairs)))
    is_apart = abs(math.log1p(seen.estimate)) >= math.log1p(race.rule.min_effect)
    confirms = race.record.confirm and (is_apart or duel.verdict in DIFFERENT)
    return Needed(pairs, MARGIN * (before + pairs * pair_s * (2 if confirms else 1)))


def deciding_words(race: Race, duel: Duel) -> str:
    """'about 11 pairs would decide it, 2 min in all (--budget 2m)', or what else would."""
    found = needed(race, duel)
    if found is None:
        return coarser_words(race, duel)
    has_budget = (race.record.experiment.spec.get("measure") or {}).get("budget") is not None
    options = [f"--budget {found.budget}"] if has_budget else []
    if found.pairs > race.rule.most_pairs:
        options.append(f"--most-pairs {found.pairs}")
    what = f"about {found.pairs} pairs would decide it"
    if duel.verdict in DIFFERENT:
        what = "about as many pairs again would confirm it"
    how = f" ({' '.join(options)})" if options else ""
    return f"{what}, {seconds(found.seconds)} in all{how}"


def coarser_words(race: Race, duel: Duel) -> str:
    """Where more pairs are no cure."""
    smallest = math.ceil(100 * (duel.minimal_detectable_effect or 0)) / 100
    asked = f" (--min-effect {smallest:g})" if race.rule.min_effect < smallest <= 1 else ""
    cure = "Put more work into a step, find a quieter machine, or judge more coarsely"
    return f"no number of pairs would. {cure}{asked}"


def is_out_of_time(race: Race) -> bool:
    """Whether its budget ended it."""
    return race.end is not None and race.end.stop_reason == "budget"


def pairs_words(race: Race, duel: Duel) -> str:
    """'6 pairs', or '6 pairs and 4 to confirm': those that a verdict stands on."""
    words = f"{duel.pairs} pair{'s' if duel.pairs != 1 else ''}"
    confirming = len(race.log_ratios(duel.case, "confirm"))
    return f"{words} and {confirming} to confirm" if confirming else words
