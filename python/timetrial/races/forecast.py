"""What a race will take, said beforehand (`timetrial race --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.experiment.estimate import judging_s, proof_s, start_s, step_s, turns_warmup_ns
from timetrial.experiment.validate import ReadyCase
from timetrial.races.pair import WARMUP_NS
from timetrial.races.rounds import FEWEST as ROUNDS
from timetrial.statistics.verdict import Rule


@dataclass(frozen=True)
class RaceForecast:
    """From the first look of one race to the last look of two."""

    sides: int  # that can take part
    unavailable: dict[str, str]  # side -> why
    fewest_pairs: int
    most_pairs: int  # without those of the race that confirms
    fewest_s: float
    most_s: float


def race_forecast(
    ready: Sequence[ReadyCase], names: dict[str, str], rule: Rule, *, confirm: bool
) -> RaceForecast:
    """For the sides that can be launched here."""
    live = [one for one in ready if one.unavailable is None]
    proofs_s = sum(
        proof_s(one) + judging_s(one) for one in {one.case.content_id: one for one in live}.values()
    )
    pair_s = sum(start_s(one) for one in live) + _turns_s(live)
    return RaceForecast(
        sides=len(live),
        unavailable={names[one.case.id]: one.unavailable for one in ready if one.unavailable is not None},
        fewest_pairs=rule.looks[0],
        most_pairs=rule.most_pairs,
        fewest_s=proofs_s + rule.looks[0] * pair_s,
        most_s=proofs_s + (2 if confirm else 1) * rule.most_pairs * pair_s,
    )


def _turns_s(sides: Sequence[ReadyCase]) -> float:
    """Of a pair: all sides take as many steps as the fastest."""
    from timetrial.heats.lengths import TURN_NS, equal_steps

    step_ns = [1e9 * step_s(one, one.case.task) or TURN_NS for one in sides]
    steps = ROUNDS * equal_steps(min(step_ns, default=TURN_NS))
    return sum(turns_warmup_ns(ns, WARMUP_NS) + steps * ns for ns in step_ns) / 1e9
