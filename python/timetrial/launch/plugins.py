"""What a plug-in says about itself, asked in a process of its own: it may be broken."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from timetrial.core import native
from timetrial.errors import InputError

TIMEOUT_S = 30.0


def describe_plugin(path: Path, fingerprint: str, preload: tuple[Path, ...] = ()) -> dict[str, Any]:
    """name, version, library, isa, flags, parts, tasks, layers, settings, ... InputError, in words, for a
    file that is no plug-in, lacks a library, has another ABI, or ends the process that loads it.

    `preload`: libraries that it needs, opened before it."""
    described: dict[str, Any] = json.loads(_ask(path, fingerprint, preload))
    return described


def try_settings(
    path: Path,
    fingerprint: str,
    preload: tuple[Path, ...],
    settings: Mapping[str, str],
    environment: Mapping[str, str],
) -> None:
    """InputError, in the plug-in's words, for a setting that it refuses. It does what a contender does before
    it builds: a library that it opens itself is opened and probed."""
    _ask(path, fingerprint, preload, tuple(settings.items()), tuple(environment.items()))


@lru_cache(maxsize=128)
def _ask(
    path: Path,
    fingerprint: str,
    preload: tuple[Path, ...],
    settings: tuple[tuple[str, str], ...] = (),
    environment: tuple[tuple[str, str], ...] = (),
) -> str:
    del fingerprint  # part of the key: a plug-in that was built anew is asked anew
    tried = ["--", *(f"{name}={value}" for name, value in settings)] if settings else []
    try:
        done = subprocess.run(
            [str(native.child_path()), "--describe", str(path), *map(str, preload), *tried],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            env=dict(environment),
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"backend {path}: it did not load within {TIMEOUT_S:g} s") from None
    if done.returncode < 0:
        asked = f" with {', '.join(tried[1:])}" if tried else ""
        raise InputError(f"backend {path}: loading it{asked} ends the process with signal {-done.returncode}")
    if done.returncode > 0:
        words = (done.stderr.strip().splitlines() or ["it cannot be loaded"])[-1]
        words = words.removeprefix("timetrial-child: ")
        raise InputError(words if settings else f"backend {path}: {words}")
    return done.stdout
