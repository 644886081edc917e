"""What a race will take, said beforehand (`timetrial race --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.analysis.outlook import pairs_that_decide
from timetrial.experiment.estimate import judging_s, proof_s, start_s, step_s, turns_warmup_ns
from timetrial.experiment.memory import proofs_at_once, side_by_side_at_most
from timetrial.experiment.places import may_start_beside
from timetrial.experiment.validate import ReadyCase
from timetrial.proving.sharing import proven_ones
from timetrial.races.pace import Pace
from timetrial.races.pair import WARMUP_NS
from timetrial.statistics.verdict import Rule

TYPICAL_PAIR = 0.03  # standard deviation of ln(ratio) between pairs, where no earlier race tells
TYPICAL_ROUNDS = 30
PLAIN = 0.10


@dataclass(frozen=True)
class RaceForecast:
    """Seconds include proofs, and for a difference the race that confirms it."""

    sides: int  # that can take part
    unavailable: dict[str, str]  # side -> why
    scatter: float  # standard deviation of ln(ratio) between pairs that this expects
    earlier_races: int  # that it was measured in; 0: a typical one
    pair_s: float
    same_pairs: int | None  # that show equal sides to be the same; None: no number is likely to
    same_s: float | None
    plain: float  # the effect of a difference that is easy to see, a fraction
    plain_pairs: int | None  # that show that one, without those that confirm it
    plain_s: float | None
    confirms: bool  # whether it counts a race that confirms the difference
    most_pairs: int  # of the rule, without those of the race that confirms
    most_s: float
    budget_pairs: int | None = None  # that the budget has time for; None: there is none


def race_forecast(
    ready: Sequence[ReadyCase],
    names: dict[str, str],
    rule: Rule,
    *,
    confirm: bool,
    pace: Pace | None = None,
    budget_s: float | None = None,
) -> RaceForecast:
    """For the sides that can be launched here. `pace`: of earlier races; None: there is none."""
    live = [one for one in ready if one.unavailable is None]
    proofs = proven_ones(live)
    proofs_s = sum(map(proof_s, proofs)) / proofs_at_once(proofs) + sum(map(judging_s, proofs))
    pair_s = pace.pair_s if pace and pace.pair_s is not None else _starts_s(live) + _turns_s(live)
    scatter = pace.scatter if pace else TYPICAL_PAIR
    same = pairs_that_decide(0.0, scatter, rule)
    plain = pairs_that_decide(PLAIN, scatter, rule)
    twice = 2 if confirm else 1

    def seconds(pairs: int | None, times: int) -> float | None:
        return None if pairs is None else proofs_s + times * pairs * pair_s

    return RaceForecast(
        sides=len(live),
        unavailable={names[one.case.id]: one.unavailable for one in ready if one.unavailable is not None},
        scatter=scatter,
        earlier_races=pace.races if pace else 0,
        pair_s=pair_s,
        same_pairs=same,
        same_s=seconds(same, 1),
        plain=PLAIN,
        plain_pairs=plain,
        plain_s=seconds(plain, twice),
        confirms=confirm,
        most_pairs=rule.most_pairs,
        most_s=proofs_s + twice * rule.most_pairs * pair_s,
        budget_pairs=None
        if budget_s is None
        else max(1, int((budget_s - proofs_s) / pair_s))
        if pair_s
        else None,
    )


def _starts_s(sides: Sequence[ReadyCase]) -> float:
    """Of a pair: those that may, start side by side."""
    beside = [start_s(one) for one in sides if may_start_beside(one, ())]
    alone = sum(map(start_s, sides)) - sum(beside)
    return alone + sum(beside) / max(1, side_by_side_at_most(len(beside)))


def _turns_s(sides: Sequence[ReadyCase]) -> float:
    """Of a pair: all sides take as many steps as the fastest."""
    from timetrial.heats.lengths import TURN_NS, equal_steps

    step_ns = [1e9 * step_s(one, one.case.task) or TURN_NS for one in sides]
    steps = TYPICAL_ROUNDS * equal_steps(min(step_ns, default=TURN_NS))
    return sum(turns_warmup_ns(ns, WARMUP_NS) + steps * ns for ns in step_ns) / 1e9
