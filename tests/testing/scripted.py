"""An engine for the plug-in that launches nothing: what each side does is said by the name of its backend.

Races against the base: `same`, `faster`, `slower` (confirmed), `unconfirmed`, `barely` (slower, confirmed,
with the weakest p-value that the rule lets pass), `unclear` (inconclusive), `bounded` (inconclusive, yet
surely not 5 % slower), `broken` (could not be judged). Launches: `crash`, `absent` (unavailable), `mistaken`
(bad input), `lazy` (accuracy 0.5), `chancy` (accuracy falls with the seed), `fat` (300 MB), `leaks` (4 MB a
step), `slows` (25 % over its steps), `short` (too few steps to tell whether it grows).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from timetrial.analysis.growth import FEWEST_LAUNCHES, Growth
from timetrial.analysis.outlook import Outlook
from timetrial.errors import InputError, Unavailable
from timetrial.races import Duel, Side
from timetrial.records.race import RaceEnd
from timetrial.statistics.growth import Change, Trend
from timetrial.statistics.verdict import Effect, Rule, Verdict
from timetrial.testing.engine import Ran

LOG = "engine.log"  # one JSON line per call, in the folder of the records


@dataclass(frozen=True)
class ScriptedRace:
    """As much of a Race as the plug-in looks at."""

    duels: list[Duel]
    metric: str
    rule: Rule
    end: RaceEnd
    folder: str = "records/race"
    seconds: float = 120.0
    seen: Outlook | None = None
    pairs: Sequence[Any] = (SimpleNamespace(seconds=12.0),) * 10
    record: Any = field(default_factory=lambda: SimpleNamespace(confirm=True))

    def outlook(self, case: str) -> Outlook | None:
        return self.seen

    def rule_of(self, case: str) -> Rule:
        return self.rule

    def log_ratios(self, case: str, stage: str) -> list[float]:
        return []

    @property
    def verdict(self) -> str | None:
        return self.duels[0].verdict

    def explain(self) -> str:
        return "what the race explains"


def duel(
    verdict: Verdict | None = "worse",
    estimate: float = 0.049,
    low: float = 0.041,
    high: float = 0.056,
    *,
    sides: tuple[str, str] = ("before", "after"),
    p_value: float = 1e-6,
    confirmed: bool | None = None,
    reason: str | None = None,
) -> Duel:
    return Duel(
        base=sides[0], challenger=sides[1], case=sides[1], verdict=verdict, reason=reason, pairs=10, void=0,
        effect=None if verdict is None else Effect(estimate, low, high), p_value=p_value,
        minimal_detectable_effect=0.031, confirmed=confirmed, log_ratios=[], other_statistics={}, settings=[],
    )  # fmt: skip


def _duel(base: Side, challenger: Side) -> Duel:
    backend, sides = str(challenger.keys["backend"]), (base.name, challenger.name)
    if backend == "slower":
        return duel(sides=sides, confirmed=True)
    if backend == "barely":
        return duel("worse", 0.049, 0.001, 0.09, sides=sides, p_value=0.008, confirmed=True)
    if backend == "unconfirmed":
        return duel("inconclusive", sides=sides, confirmed=False, reason="a second race found +0.3 %")
    if backend == "broken":
        return duel(None, sides=sides, reason="it crashed 3 times")
    return {
        "same": duel("same", 0.004, -0.011, 0.02, sides=sides),
        "faster": duel("better", -0.31, -0.33, -0.29, sides=sides),
        "unclear": duel("inconclusive", 0.019, -0.02, 0.061, sides=sides),
        "late": duel("inconclusive", 0.019, -0.02, 0.061, sides=sides),
        "late-worse": duel("worse", 0.049, 0.01, 0.09, sides=sides, confirmed=None),
        "late-first": duel(None, sides=sides, reason="its time was over after 2 pairs"),
        "late-hopeless": duel("inconclusive", 0.03, -0.3, 0.4, sides=sides),
        "bounded": duel("inconclusive", -0.04, -0.12, 0.04, sides=sides),
    }[backend]


def _growth(backend: str, launches: int) -> Growth:
    if backend == "short":
        return Growth(None, None, None)
    memory = Trend(4.0 * 2**20, 50.0 * 2**20, 1946.0 * 2**20, 500, backend == "leaks")
    times = Trend(500.0, 1e6, 1.25e6, 500, backend == "slows") if launches >= FEWEST_LAUNCHES else None
    return Growth(memory, times, Change(151, 2e6, 1e5))


@dataclass(frozen=True)
class ScriptedEngine:
    results: Path

    def once(self, sides: Sequence[Side], metric: str, seed: int) -> Ran:
        ran = [self._ran("once", side, metric=metric, seed=seed) for side in sides]
        return next((one for one in ran if one.outcome != "ok"), ran[0])

    def learn(self, side: Side, seed: int, epochs: int, seeds: int) -> Ran:
        return self._ran("learn", side, seed=seed, epochs=epochs, seeds=seeds)

    def occupy(self, side: Side, seed: int, launches: int) -> Ran:
        return self._ran("occupy", side, seed=seed, launches=launches)

    def race(self, sides: Sequence[Side], metric: str, rule: Rule, seed: int, budget: float) -> ScriptedRace:
        self._log(
            "race",
            [dict(one.keys) for one in sides],
            metric=metric,
            rule=asdict(rule),
            seed=seed,
            budget=budget,
        )
        late = any(str(one.keys.get("backend")).startswith("late") for one in sides)
        end = RaceEnd(stop_reason="budget" if late else "decided", seconds=120.0)
        needed = {"late": 24, "late-worse": 11, "late-first": 11}.get(str(sides[-1].keys.get("backend")))
        seen = Outlook(0.019, -0.02, 0.061, pairs=10, needed=needed, pair_s=12.0) if late else None
        return ScriptedRace([_duel(sides[0], one) for one in sides[1:]], metric, rule, end, seen=seen)

    def place(self, folder: str, case: str | None) -> dict[str, Any]:
        return {
            "when": "2026-10-01T00:00:00+00:00", "record": Path(folder).name, "machine_id": "m",
            "environment_id": "e", "timetrial_version": "0.1.0", "proven": True,
        }  # fmt: skip

    def _ran(self, call: str, side: Side, **facts: Any) -> Ran:
        self._log(call, [dict(side.keys)], **facts)
        backend = side.keys.get("backend")
        if backend == "absent":
            raise Unavailable("absent is not installed. Install it: timetrial frameworks install absent")
        if backend == "mistaken":
            raise InputError("There is no backend 'mistaken'. Did you mean 'eigen'?")
        if backend == "crash":
            return Ran(
                side.name,
                "crash",
                "ValueError: shapes differ",
                folder="records/7f3a",
                again="timetrial run ...",
            )
        accuracies = {"lazy": [0.5], "chancy": [0.97, 0.95, 0.89][: facts.get("seeds", 1)]}
        return Ran(
            side.name,
            accuracies=accuracies.get(str(backend), [0.97] * facts.get("seeds", 1)),
            peak_bytes=(300 if backend == "fat" else 50) * 2**20,
            growth=_growth(str(backend), facts.get("launches", 1)),
            folder="records/7f3a",
            again="timetrial run ...",
        )

    def _log(self, call: str, sides: list[dict[str, Any]], **facts: Any) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        with (self.results / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"call": call, "sides": sides, **facts}) + "\n")


def engine(results: Path, *, own: bool, rootdir: Path | None = None) -> ScriptedEngine:
    """Stands for timetrial.testing.engine.real_engine."""
    return ScriptedEngine(results)
