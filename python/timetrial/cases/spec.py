"""The shape of an experiment as asked. pydantic stays at this edge: behind it, everything is plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
)

from timetrial.cases.budget import seconds_of
from timetrial.cases.environment import check_environment, variables_of
from timetrial.cases.grammar import flatten
from timetrial.cases.keys import backend_name, check_keys, check_workload_keys
from timetrial.errors import InputError, nearest

Effort = Literal["quick", "normal", "rigorous"]

MOST_CASES = 20_000  # weeks of measuring: more is a value too many


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Train(_Table):
    """[train]: with it, learning launches run the recipe to its end and accuracy is reported."""

    epochs: StrictInt = Field(
        ge=1, le=100_000, description="how often a learning launch goes over the training images"
    )
    most_steps: StrictInt | None = Field(
        default=None,
        ge=1,
        description="a learning launch ends after so many steps at the latest, within an epoch if need be",
    )


class Measure(_Table):
    """[measure]"""

    effort: Effort = Field(
        default="quick", description="how finely ratios are to be known: to 3 %, 1 % or 0.5 %"
    )
    reference: dict[str, Any] | None = Field(
        default=None,
        description="what the others are compared with: a backend, or keys and values of one case; "
        "unless told otherwise the first contender that is ok",
    )
    launches: StrictInt | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="speed launches of each case, exactly; otherwise `effort` decides",
    )
    learning_seeds: StrictInt | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="with how many seeds is learned; otherwise `effort` decides",
    )
    resource_launches: StrictInt = Field(
        default=0,
        ge=0,
        le=1000,
        description="launches of each case for curves of memory and processors: steps for two seconds and "
        "more, then an evaluation; nothing of them is timed",
    )
    learning: Literal["once", "every"] = Field(
        default="once",
        description="once: of what is proven to compute the same one learns each seed for all, and each "
        "contender the first; every: each case with each seed",
    )
    isolated: StrictBool = Field(
        default=False,
        description="each launch has the machine to itself, instead of turns beside others of the same work",
    )
    most_cases: StrictInt = Field(
        default=MOST_CASES, ge=1, description="more cases than this are refused: a value too many"
    )
    budget: float | None = Field(
        default=None,
        description="the best answer in this time, for proofs and speed, or for a race: seconds, "
        "or `90s`, `2m`, `1h`",
    )
    start_timeout_s: StrictInt | None = Field(
        default=None,
        ge=1,
        le=86_400,
        description="seconds for import, building and first step; 300 unless told otherwise",
    )
    progress_timeout_s: StrictInt | None = Field(
        default=None, ge=1, le=86_400, description="seconds for any later step; 60 unless told otherwise"
    )

    @field_validator("budget", mode="before")
    @classmethod
    def _time(cls, value: object) -> object:
        return None if value is None else seconds_of(value)

    @field_validator("reference", mode="before")
    @classmethod
    def _backend_by_name(cls, value: object) -> object:
        if isinstance(value, str):
            return {"backend": backend_name(value)}
        if not isinstance(value, Mapping):
            return value
        # A case says who computes it in one place, whether that is a backend or a callable.
        flat = {"backend" if key == "callable" else key: word for key, word in flatten(value).items()}
        return {key: backend_name(word) if key == "backend" else word for key, word in flat.items()}


class Spec(_Table):
    """One experiment. `workload`, `contender` and `axes` have flat, dotted keys; a list value spans."""

    name: StrictStr = Field(min_length=1, description="of the experiment, in the first line of its table")
    question: StrictStr | None = Field(default=None, description="that it answers, for `timetrial list`")
    seed: StrictInt = Field(
        default=1, ge=0, lt=2**63, description="decides weights, data order and the order of launches"
    )
    workload: dict[str, Any] = Field(
        default_factory=dict, description="network, dataset, batch size and optimizer: one value each"
    )
    train: Train | None = Field(
        default=None, description="with it, learning launches run to their end and accuracy is reported"
    )
    contender: list[dict[str, Any]] = Field(
        default_factory=list,
        description="one table for each who computes, with keys of its own; a list spans",
    )
    axes: dict[str, Any] = Field(
        default_factory=dict, description="keys whose values every contender gets in turn; a list spans"
    )
    measure: Measure = Field(default=Measure(), description="how finely, how long and in what way")
    environment: dict[StrictStr, StrictStr] = Field(
        default_factory=dict,
        description="variables that contenders get beside those made from scratch: `environment.DATA=/data`",
    )

    @field_validator("workload", "axes", mode="before")
    @classmethod
    def _flat(cls, value: object) -> object:
        return flatten(value) if isinstance(value, Mapping) else value

    @field_validator("contender", mode="before")
    @classmethod
    def _flat_tables(cls, value: object) -> object:
        tables = [value] if isinstance(value, Mapping) else value
        if not isinstance(tables, list | tuple):
            return value
        return [flatten(table) if isinstance(table, Mapping) else table for table in tables]


def parse_spec(document: Mapping[str, Any], where: str) -> Spec:
    """Validates a document. `where` (a file, "command line") begins every message."""
    try:
        spec = Spec.model_validate(dict(document))
    except ValidationError as error:
        raise InputError("\n".join(_message(where, problem) for problem in error.errors())) from None
    check_workload_keys(spec.workload, f"{where}, [workload]")
    for key, value in spec.workload.items():
        if isinstance(value, list):
            raise InputError(f"{where}, [workload]: '{key}' has a list. What varies belongs into [axes].")
    for number, table in enumerate(spec.contender, 1):
        check_keys(table, f"{where}, [[contender]] {number}")
    check_keys(spec.axes, f"{where}, [axes]")
    check_keys(spec.measure.reference or (), f"{where}, reference")
    _check_places(spec, where)
    for variables in (spec.environment, *map(variables_of, (spec.axes, *spec.contender))):
        check_environment(variables, where)
    return spec


def _check_places(spec: Spec, where: str) -> None:
    """No key in two places, no empty axis."""
    for number, table in enumerate(spec.contender, 1):
        for key in table:
            if key in spec.axes:
                raise InputError(
                    f"{where}: '{key}' is both in [axes] and in [[contender]] {number}. "
                    "Keep it in [axes] to span every contender, or in the contenders."
                )
    for place, table in (("[axes]", spec.axes), *(("[[contender]]", table) for table in spec.contender)):
        for key, value in table.items():
            if isinstance(value, list) and not value:
                raise InputError(f"{where}, {place}: '{key}' has no values.")
            if isinstance(value, list) and any(isinstance(one, list | Mapping) for one in value):
                raise InputError(
                    f"{where}, {place}: the values of '{key}' must be numbers, words or booleans."
                )


def _message(where: str, problem: Any) -> str:
    """One pydantic error as a sentence a person can act on."""
    location = [str(part) for part in problem["loc"]]
    table = "".join(f"[{part}]" for part in location[:-1] if not part.isdigit())
    place = f"{where}, {table}" if table else where
    key = ".".join(location)
    if problem["type"] == "extra_forbidden":
        models: dict[str, type[BaseModel]] = {"train": Train, "measure": Measure}
        model = models.get(location[0], Spec)
        return f"{place}: there is no key '{location[-1]}'.{nearest(location[-1], model.model_fields)}"
    if problem["type"] == "missing":
        return f"{place}: '{key}' is missing."
    if problem["type"] == "literal_error":
        known = [word.strip("' ") for word in problem["ctx"]["expected"].replace(" or ", ",").split(",")]
        return f"{place}: '{key}' is {problem['input']!r}.{nearest(str(problem['input']), known)}"
    if isinstance(problem.get("ctx", {}).get("error"), InputError):  # it says all of this itself
        return f"{place}: {problem['ctx']['error']}"
    expected = problem["msg"].replace("Input should be", "expected").replace("Input should", "it should")
    return f"{place}: '{key}' is {problem['input']!r}; {expected}."
