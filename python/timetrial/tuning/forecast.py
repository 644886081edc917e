"""What a search would do, said beforehand (`timetrial tune --dry-run`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.estimate import forecast
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import validate
from timetrial.report.numbers import seconds
from timetrial.tuning.space import Space
from timetrial.tuning.tuner import AT_ONCE, FINALS, RACE_S


@dataclass(frozen=True)
class TuningForecast:
    """Rough, as all that is said before anything ran."""

    base: str  # in words
    choices: dict[str, list[str]]  # what may be chosen -> its values
    candidates: int
    looks: int  # that the budget is likely to have, the base's aside
    all_s: float  # for one look at each
    first_s: float  # of the budget, for first looks; the next two are kept of it
    finals_s: float
    race_s: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return vars(self)

    def sentences(self) -> str:
        """For people."""
        keys = ", ".join(f"{name} ({len(some)})" for name, some in self.choices.items())
        return (
            f"{self.candidates} candidates that differ in {keys}; the base is {self.base}.\n"
            f"First looks {seconds(self.first_s)}, about {self.looks} of {self.candidates}; finals "
            f"{seconds(self.finals_s)}; race {seconds(self.race_s)}. A look at each takes about "
            f"{seconds(self.all_s)}."
        )


def forecast_tuning(experiment: Experiment, budget_s: float, engine: Engine | None = None) -> TuningForecast:
    """InputError, as the search itself would: there is nothing to tune, or the work differs."""
    ready = [one for one in validate(experiment.cases, engine or real_engine()) if one.unavailable is None]
    space = Space([one.case for one in ready])
    measure = experiment.spec.measure.model_copy(update={"launches": 1})
    once = replace(experiment, spec=experiment.spec.model_copy(update={"measure": measure}))
    all_s = forecast(once, ready).seconds * (1 + 1 / AT_ONCE)  # the base rides in each heat
    rest_s = max(0.0, budget_s - RACE_S)
    first_s = rest_s * (1 - FINALS)
    count = len(space.candidates)
    return TuningForecast(
        base=" ".join(space.base.point.values()),
        choices=space.choices,
        candidates=count,
        looks=max(2, min(count, round(count * first_s / all_s))) if all_s else count,
        all_s=all_s,
        first_s=first_s,
        finals_s=rest_s - first_s,
        race_s=RACE_S,
    )
