"""The contender's environment, made from scratch: what is not listed here does not reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """`variables` is all the contender gets; `dropped` names what the caller had and it does not get.
    Names only: values may be secrets."""

    variables: dict[str, str]
    dropped: list[str]


def build_environment(folder: Path, *, settings: Mapping[str, str], asked: Mapping[str, str]) -> Environment:
    """PATH, LANG, HOME and TMPDIR inside the launch's folder, what settings need (OMP_NUM_THREADS), and
    what the experiment's [environment] names (it wins)."""
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


def environment_of(pid: int) -> dict[str, str]:
    """What a process was started with. OSError: it is gone."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="surrogateescape").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)
