"""Plug-ins that are built on the user's machine, once, against a library that is there: LibTorch, oneDNN 2.x.

recipes.py says what there is to build, torch.py and onednn.py find what it is built against, builder.py
compiles, store.py keeps.
"""

from __future__ import annotations

from timetrial.building.builder import ensure
from timetrial.building.plan import Plan, make_plan
from timetrial.building.recipes import RECIPES, Recipe, recipe_named
from timetrial.building.store import lookup
from timetrial.building.target import Target

__all__ = ["RECIPES", "Plan", "Recipe", "Target", "ensure", "lookup", "make_plan", "recipe_named"]
