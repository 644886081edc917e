"""What a plug-in says about itself, asked in a process of its own: it may be broken."""

from __future__ import annotations

import json
import subprocess
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


@lru_cache(maxsize=128)
def _ask(path: Path, fingerprint: str, preload: tuple[Path, ...]) -> str:
    del fingerprint  # part of the key: a plug-in that was built anew is asked anew
    try:
        done = subprocess.run(
            [str(native.child_path()), "--describe", str(path), *map(str, preload)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            env={},
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"backend {path}: it did not load within {TIMEOUT_S:g} s") from None
    if done.returncode < 0:
        raise InputError(f"backend {path}: loading it ends the process with signal {-done.returncode}")
    if done.returncode > 0:
        words = done.stderr.strip().splitlines() or ["it cannot be loaded"]
        raise InputError(f"backend {path}: {words[-1].removeprefix('timetrial-child: ')}")
    return done.stdout
