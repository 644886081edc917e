"""What every native backend is on this machine: shipped, built here, waiting to be built, or unavailable."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from timetrial.building import store
from timetrial.building.plan import make_plan
from timetrial.building.recipes import RECIPES, Recipe
from timetrial.cases.case import Case, Workload
from timetrial.errors import TimetrialError, Unavailable

State = Literal["ready", "built", "not built", "unavailable", "broken"]


@dataclass(frozen=True)
class BackendState:
    """One row. `built_for` and `path` are null where there is nothing."""

    name: str
    state: State
    detail: str
    cure: str | None = None
    built_for: str | None = None
    path: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def backend_states() -> list[BackendState]:
    """Changes nothing and builds nothing."""
    from timetrial import contenders

    backends = contenders.native_backends()
    shipped = [name for name in backends if any(variant.library for variant in backends[name])]
    found = [*map(_shipped, shipped), *map(_built_here, RECIPES.values())]
    return sorted(found, key=lambda state: state.name)


def _shipped(name: str) -> BackendState:
    from timetrial import contenders

    try:
        contender = contenders.resolve(Case(name, Workload("mlp", "synthetic", 1, {})), build=False)
    except Unavailable as lacking:
        return _unavailable(name, lacking)
    except TimetrialError as error:
        return BackendState(name, "broken", str(error))
    isa = f", {contender.isa}" if contender.isa else ""
    return BackendState(name, "ready", f"came with timetrial{isa}", path=str(contender.path))


def _built_here(recipe: Recipe) -> BackendState:
    try:
        plan = make_plan(recipe)
    except Unavailable as lacking:
        return _unavailable(recipe.name, lacking)
    plugin = store.lookup(plan)
    if plugin is not None:
        words = f"built here for {plan.target.name} in {plan.target.library.parent}"
        return BackendState(recipe.name, "built", words, built_for=plan.target.name, path=str(plugin))
    others = store.others(recipe.name)
    older = f" (there are older ones, for {', '.join(others)})" if others else ""
    return BackendState(
        recipe.name,
        "not built",
        f"not built for {plan.target.name} yet{older}; the first run does it",
        cure=f"timetrial backends build {recipe.name}",
    )


def _unavailable(name: str, lacking: Unavailable) -> BackendState:
    reason, _, cure = str(lacking).partition(": ")
    return BackendState(name, "unavailable", reason, cure or None)
