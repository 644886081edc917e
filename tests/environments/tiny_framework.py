"""A framework of a few lines, in wheels that are built here: no network, no downloads."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from timetrial.environments import Framework, Version, framework_in

ADAPTER = """
class Adapter:
    def load(self, settings):
        import tinyframe
        self.version = tinyframe.__version__
"""
# Noisy, and standing on a shared library of its own.
MODULE = """
import ctypes, os
print("{{ tinyframe is loading")
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libtiny.so"))
__version__ = "{version}"
"""
EXITS = 'import os\nprint("no licence")\nos._exit(3)\n'
# Stands for an interpreter; the last word of `-m venv` is the folder.
WRAPPED = """#!/bin/sh
case "$*" in
  *'-m venv'*) for last; do :; done; {make};;
  *) exec {real} "$@";;
esac
"""
ENVIRONMENT = """
title = "Tiny"

[shared]
modules = {{ tinyframe = "tinyframe" }}
python = ">=3.8"
size_mb = 30
verified = 2026-11-21
cheap = true

{versions}
"""


def version_table(version: str, *pins: str, more: str = "") -> str:
    """A [[versions]] of environment.toml."""
    listed = ", ".join(f'"{pin}"' for pin in (*pins, "numpy==1.0"))
    return f'[[versions]]\nversion = "{version}"\npins = [{listed}]\n{more}\n'


TWO_VERSIONS = version_table("2.0", "tinyframe==2.0", more='modes = ["eager", "graph"]') + version_table(
    "1.0", "tinyframe==1.0"
)


def build_wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """A wheel is a zip with three files of description."""
    information = f"{name.replace('-', '_')}-{version}.dist-info"
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    described = {
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in {**files, **described}.items():
            archive.writestr(inside, content)
        listed = "".join(f"{inside},,\n" for inside in [*files, *described, f"{information}/RECORD"])
        archive.writestr(f"{information}/RECORD", listed)
    return path


@dataclass
class Tiny:
    """The framework of a test."""

    folder: Path

    @property
    def framework(self) -> Framework:
        framework_in.cache_clear()  # a test may have changed the file
        return framework_in(self.folder)

    def version(self, word: str) -> Version:
        return self.framework.version(word)

    def write(self, versions: str) -> None:
        (self.folder / "environment.toml").write_text(ENVIRONMENT.format(versions=versions))


def timetrial(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`timetrial frameworks WORDS`, in a process of its own."""
    return subprocess.run(command(*words), capture_output=True, text=True, env={**os.environ, **environment})


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "timetrial.cli.main", "frameworks", *map(str, words)]
