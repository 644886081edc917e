"""What @pytest.mark.bench(...) may say, and what the options say where it is silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timetrial.cases.budget import seconds_of
from timetrial.errors import InputError, nearest

if TYPE_CHECKING:
    from timetrial.records.metric import Metric

TIMES: tuple[Metric, ...] = (
    "step_time",
    "samples_per_s",
)  # metrics in which a side can be slower, the default first


BUDGET_S = 120.0  # on a quiet machine nearly every race of ordinary steps is decided in less


@dataclass(frozen=True)
class Wishes:
    """What a test wants of its assertions."""

    max_slowdown: float = 0.03  # a fraction, where the assertion names none
    metric: Metric = TIMES[0]
    seed: int = 1  # of every race and of every launch: weights, order of the data, whose turn it is
    strict: bool = False  # what could not be decided fails
    budget: float = (
        BUDGET_S  # seconds that a race may take; twice as many where only the confirmation is missing then
    )


def check_slowdown(value: object, where: str) -> float:
    """A fraction above 0 and up to 1; InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InputError(
            f"{where}: max_slowdown is {value!r}; expected a fraction above 0 and up to 1 (0.03 is 3 %)."
        )
    return float(value)


def check_metric(value: object, where: str) -> Metric:
    """A metric in which a side can be slower; InputError otherwise."""
    for known in TIMES:
        if value == known:
            return known
    raise InputError(f"{where}: metric is {value!r}; expected {' or '.join(TIMES)}.")


def check_seed(value: object, where: str) -> int:
    """A whole number from 0 on; InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{where}: seed is {value!r}; expected a whole number, 0 or more.")
    return value


def check_strict(value: object, where: str) -> bool:
    """True or False; InputError otherwise."""
    if not isinstance(value, bool):
        raise InputError(f"{where}: strict is {value!r}; expected True or False.")
    return value


def check_budget(value: object, where: str) -> float:
    """Seconds, or "90s", "5m"; InputError otherwise."""
    try:
        return seconds_of(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


_CHECKS: Mapping[str, Callable[[object, str], Any]] = {
    "max_slowdown": check_slowdown,
    "metric": check_metric,
    "seed": check_seed,
    "strict": check_strict,
    "budget": check_budget,
}


def checked_keywords(args: tuple[object, ...], keywords: Mapping[str, object], where: str) -> dict[str, Any]:
    """The keywords of one marker. InputError for an unknown one (names the nearest) or a wrong value."""
    if args:
        raise InputError(
            f"{where}: the marker bench takes keywords only, not {args[0]!r}. "
            f"Known: {', '.join(sorted(_CHECKS))}."
        )
    for key in keywords:
        if key not in _CHECKS:
            raise InputError(f"{where}: the marker bench has no keyword '{key}'.{nearest(key, _CHECKS)}")
    return {key: _CHECKS[key](value, where) for key, value in keywords.items()}
