"""The contender's environment, made from scratch: what is not listed here does not reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from timetrial.errors import InputError

# These decide where the launch's files go; an experiment that changed them would write elsewhere.
RESERVED = ("HOME", "TMPDIR")


@dataclass(frozen=True)
class Environment:
    """`variables` is all the contender gets; `dropped` names what the caller had and it does not get.
    Names only: values may be secrets."""

    variables: dict[str, str]
    dropped: list[str]


def build_environment(folder: Path, *, settings: Mapping[str, str], asked: Mapping[str, str]) -> Environment:
    """PATH, LANG, HOME and TMPDIR inside the launch's folder, what settings need (OMP_NUM_THREADS), and
    what the experiment's [environment] names (it wins)."""
    for name in RESERVED:
        if name in asked:
            raise InputError(
                f"[environment] cannot set {name}: it lies inside the launch's folder. Remove it"
            )
    for name, value in asked.items():
        if not name or "=" in name or "\0" in name or "\0" in str(value):
            raise InputError(f"[environment] {name!r} is not a name of an environment variable")
    variables = {
        "PATH": os.environ.get("PATH") or os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        **settings,
        **{name: str(value) for name, value in asked.items()},
    }
    dropped = sorted(name for name, value in os.environ.items() if variables.get(name) != value)
    return Environment(variables, dropped)
