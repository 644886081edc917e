"""Everything that decides a built plug-in, and the key that follows from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timetrial.building.compiler import Compiler, find_compiler
from timetrial.building.recipes import Recipe
from timetrial.building.target import Target
from timetrial.core import native
from timetrial.workloads.cache import recipe_key

FLAGS = (
    *("-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--no-undefined"),
    *("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"),
)


@dataclass(frozen=True)
class Plan:
    """What will be compiled, against what, by whom."""

    recipe: Recipe
    target: Target
    compiler: Compiler

    @property
    def source_folders(self) -> list[Path]:
        """The backend's own, then those whose headers it includes."""
        return [native.sources_dir() / name for name in (self.recipe.backend, *self.recipe.shared)]

    @property
    def sources(self) -> list[Path]:
        """What the compiler gets."""
        return sorted(self.source_folders[0].glob("*.cpp"))

    def command(self, output: Path) -> list[str]:
        """The compiler's command line."""
        includes = (f"-I{native.include_dir()}", f"-I{native.sources_dir()}")
        system = (word for folder in self.target.includes for word in ("-isystem", str(folder)))
        return [
            *(*self.compiler.command, *FLAGS, *self.recipe.flags, *includes, *system),
            *(*map(str, self.sources), "-o", str(output), *self.target.link),
        ]

    def identity(self) -> dict[str, Any]:
        """All that a plug-in depends on: where one of these differs, it is built anew."""
        return {
            "target": self.target.identity(),
            "compiler": [*self.compiler.command, self.compiler.version],
            "flags": [*FLAGS, *self.recipe.flags, *map(str, self.target.includes), *self.target.link],
            "sources": [_hash_of(folder) for folder in self.source_folders],
            "headers": _hash_of(native.include_dir() / "timetrial"),
        }

    @property
    def key(self) -> str:
        """Names the plug-in in the cache."""
        return recipe_key(self.recipe.name, self.identity())


def make_plan(recipe: Recipe) -> Plan:
    """Unavailable, with the cure, where this machine lacks the library or a compiler."""
    return Plan(recipe, recipe.find_target(), find_compiler())


def _hash_of(folder: Path) -> str:
    """Names and contents of every file in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
