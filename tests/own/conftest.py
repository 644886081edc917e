"""Modules of a user's, written into the working directory of the test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Write = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """project("mine.py", text) writes a file below the working directory and gives its path."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def environment(tmp_path: Path) -> Write:
    """environment("before", "1.0", numpy=True): a virtual environment with a package `mypkg` of this version;
    its interpreter."""

    def make(name: str, version: str, *, numpy: bool = True) -> Path:
        import venv

        folder = tmp_path / name
        venv.create(folder, with_pip=False, symlinks=True)
        packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        if numpy:
            (packages / "numpy.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
        (packages / "mypkg").mkdir()
        (packages / "mypkg" / "__init__.py").write_text(
            f'__version__ = "{version}"\n\n\ndef make_step():\n    return lambda: float(__version__)\n'
        )
        return folder / "bin" / "python"

    return make
