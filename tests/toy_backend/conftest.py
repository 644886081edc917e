"""Plug-ins built outside the tree, as users would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HEADERS = HERE.parents[1] / "cpp" / "include"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a file of this folder away from the tree, with warnings as errors: the headers must be clean
    in a user's build."""
    plugins: dict[tuple[str, ...], Path] = {}

    def build(name: str, *more: str) -> Path:
        key = (name, *more)
        if key not in plugins:
            plugin = tmp_path_factory.mktemp(name) / f"{name}.so"
            flags = [
                "-std=c++20",
                "-O2",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wl,--no-undefined",
            ]
            source = str(HERE / f"{name}.cpp")
            compiler = os.environ.get("CXX", "g++")
            subprocess.run(
                [compiler, *flags, *more, f"-I{HEADERS}", source, "-o", str(plugin)],
                check=True,
                cwd=plugin.parent,
            )
            plugins[key] = plugin
        return plugins[key]

    return build
