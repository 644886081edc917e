"""The forecast of a race, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timetrial.report.numbers import seconds

if TYPE_CHECKING:
    from timetrial.races.forecast import RaceForecast


def forecast_lines(expected: RaceForecast, sides: Sequence[str]) -> Iterator[str]:
    """Who can be raced, what a pair takes, when a verdict may come."""
    base, *others = sides
    yield f"{', '.join(others)} against {base}: {expected.sides} of {len(sides)} sides can be raced here."
    for name, why in expected.unavailable.items():
        yield f"unavailable: {name}: {why}"
    pair, scatter = seconds(expected.pair_s), f"{100 * expected.scatter:.1f} %"
    if expected.earlier_races:
        many = "s" if expected.earlier_races != 1 else ""
        races = f"{expected.earlier_races} earlier race{many}"
        yield f"A pair takes about {pair}; in {races} here pairs scattered by {scatter}."
    else:
        yield f"A pair takes about {pair}, pairs scatter by {scatter}: typical, no earlier race here tells."
    yield f"the same       {_when(expected.same_pairs, expected.same_s)}"
    plain = _when(expected.plain_pairs, expected.plain_s)
    confirmed = ", confirmation included" if expected.confirms and expected.plain_pairs else ""
    yield f"{100 * expected.plain:.0f} % apart     {plain}{confirmed}"
    yield f"undecided      after {expected.most_pairs} pairs, {seconds(expected.most_s)} at most"
    if expected.budget_pairs is not None:
        many = "s" if expected.budget_pairs != 1 else ""
        yield f"The budget has time for about {expected.budget_pairs} pair{many}."


def _when(pairs: int | None, time_s: float | None) -> str:
    if pairs is None or time_s is None:
        return "no number of pairs is likely to show it"
    return f"after about {pairs} pairs, {seconds(time_s)}"
