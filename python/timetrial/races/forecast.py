"""What a race will take, said beforehand (`timetrial race --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.experiment.estimate import WARMUP_SHARE, judging_s, proof_s, start_s, step_s
from timetrial.experiment.validate import ReadyCase
from timetrial.races.racing import ROUNDS, WARMUP_NS
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
    pair_s = sum(start_s(one) + _turns_s(one) for one in live)
    return RaceForecast(
        sides=len(live),
        unavailable={names[one.case.id]: one.unavailable for one in ready if one.unavailable is not None},
        fewest_pairs=rule.looks[0],
        most_pairs=rule.most_pairs,
        fewest_s=proofs_s + rule.looks[0] * pair_s,
        most_s=proofs_s + (2 if confirm else 1) * rule.most_pairs * pair_s,
    )


def _turns_s(one: ReadyCase) -> float:
    from timetrial.heats.lengths import TURN_NS, turn_steps

    step_ns = 1e9 * step_s(one, one.case.task) or TURN_NS
    return (WARMUP_SHARE * WARMUP_NS + ROUNDS * turn_steps(step_ns) * step_ns) / 1e9
