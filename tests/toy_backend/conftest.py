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
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles a file of this folder away from the tree, with warnings as errors: the headers must be clean
    in a user's build."""
    plugins: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in plugins:
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
                [compiler, *flags, f"-I{HEADERS}", source, "-o", str(plugin)], check=True, cwd=plugin.parent
            )
            plugins[name] = plugin
        return plugins[name]

    return build
