"""Compilers that are shell scripts, a library that is an empty file, and one real build for the session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from timetrial import building
from timetrial.building import builder
from timetrial.building.plan import Plan
from timetrial.building.recipes import Recipe
from timetrial.building.target import Target
from timetrial.core import native

# Finds the word behind -o, as every compiler does.
SHELL = """#!/bin/sh
if [ "$1" = --version ]; then echo "fake compiler {version}"; exit 0; fi
echo compiled >> {folder}/calls
while [ "$1" != -o ]; do shift; done
output=$2
{body}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; nothing is remembered of failures in other tests."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TIMETRIAL_CACHE", str(folder))
    monkeypatch.setattr(builder, "_failed", {})
    return folder


@pytest.fixture
def plugin() -> Path:
    """A finished plug-in, for compilers that only pretend."""
    return native.native_dir() / "backends" / "null.so"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Callable[..., Path]:
    """Makes $CXX a script with this body; the default body "compiles" a plug-in."""

    def make(body: str = f"cp {plugin} $output", version: str = "1") -> Path:
        path = tmp_path / "fake-g++"
        path.write_text(SHELL.format(folder=tmp_path, version=version, body=body))
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))
        return path

    make()
    return make


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Against a library whose file a test may change."""
    library = tmp_path / "libfake.so"
    library.symlink_to(native.native_dir() / "backends" / "null.so")
    target = Target("fake 1.0", "1.0", library, (), ())
    return Recipe("fake", "libtorch", lambda: target, seconds=1)


@pytest.fixture
def plan(recipe: Recipe, compiler: Callable[..., Path]) -> Plan:
    del compiler  # $CXX must be set
    return building.make_plan(recipe)


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], int]:
    """How often the compiler was asked to compile."""
    file = tmp_path / "calls"
    return lambda: len(file.read_text().split()) if file.exists() else 0


@pytest.fixture(scope="session")
def libtorch(workers_folder: Path) -> Path:
    """The real plug-in, compiled once for all tests: who comes second waits for who was first."""
    before = os.environ.get("TIMETRIAL_CACHE")
    os.environ["TIMETRIAL_CACHE"] = str(workers_folder / "libtorch")
    try:
        return building.ensure(building.make_plan(building.recipe_named("libtorch")))
    finally:
        if before is None:
            del os.environ["TIMETRIAL_CACHE"]
        else:
            os.environ["TIMETRIAL_CACHE"] = before
