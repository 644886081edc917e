"""Judged assertions as lines of a history file (--bench-json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timetrial.races import Duel, Race
    from timetrial.testing.engine import Engine, Ran
    from timetrial.testing.judgement import Assertion, Status

_METRICS: dict[Assertion, str] = {"learns": "accuracy", "memory": "peak_memory", "growth": "peak_memory"}


def race_entry(test: str, status: Status, race: Race, duel: Duel, engine: Engine) -> dict[str, Any]:
    """The ratio of the metric, side over base, with the interval that decided."""
    from timetrial.records.metric import METRICS

    numbers = {} if duel.effect is None else {key: 1 + value for key, value in vars(duel.effect).items()}
    return {
        **engine.place(str(race.folder), duel.case),
        **numbers,
        "source": "pytest",
        "name": f"{test}: {duel.challenger}",
        "against": duel.base,
        "metric": race.metric,
        "unit": "1",
        "direction": METRICS[race.metric].good,
        "confidence": race.rule_of(duel.case).confidence_at(duel.pairs),
        "outcome": "ok" if duel.effect is not None else None,
        "verdict": duel.verdict,
        "status": status,
    }


def value_entry(
    test: str, assertion: Assertion, status: Status, ran: Ran, value: float, engine: Engine
) -> dict[str, Any]:
    """An accuracy or a memory, which has no interval."""
    from timetrial.records.metric import METRICS

    metric = _METRICS[assertion]
    return {
        **engine.place(ran.folder, None),
        "source": "pytest",
        "name": f"{test}: {ran.name}",
        "metric": metric,
        "unit": METRICS[metric].unit,
        "direction": METRICS[metric].good,
        "estimate": float(value),
        "outcome": "ok",
        "status": status,
    }
