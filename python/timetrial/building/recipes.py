"""What can be built here, as data. The sources lie in the native tree, in sources/<backend>."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from timetrial.building.onednn import find_debian_onednn
from timetrial.building.target import Target
from timetrial.building.torch import find_torch
from timetrial.errors import InputError, nearest


@dataclass(frozen=True)
class Recipe:
    """One plug-in."""

    name: str  # for `timetrial backends build`
    backend: str
    find_target: Callable[[], Target]  # Unavailable where the machine lacks it
    seconds: int  # about how long the compiler takes, for the user who waits
    shared: tuple[str, ...] = ()  # other folders of sources that it includes from
    flags: tuple[str, ...] = ("-O2",)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("libtorch", "libtorch", find_torch, seconds=10),
        Recipe(
            "onednn-debian",
            "onednn",
            find_debian_onednn,
            seconds=15,
            shared=("layers",),
            flags=("-O3", "-DNDEBUG", "-fopenmp"),
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """InputError for a name that is none."""
    if name not in RECIPES:
        raise InputError(f"nothing that is built here is called {name!r}.{nearest(name, RECIPES)}")
    return RECIPES[name]
