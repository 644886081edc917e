"""What a plug-in says about itself, asked in a process of its own: it may be broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from timetrial.core import native
from timetrial.errors import InputError
from timetrial.processes.probe import ask


class Description(BaseModel):
    """Of a plug-in, by itself; more than this is for others."""

    model_config = ConfigDict(frozen=True, strict=True)

    isa: str
    settings: list[str]
    flags: list[str]


def describe_plugin(path: Path, fingerprint: str, preload: tuple[Path, ...] = ()) -> Description:
    """InputError, in words, for a file that is no plug-in, lacks a library, has another ABI, or ends the
    process that loads it.

    `preload`: libraries that it needs, opened before it."""
    return _ask(path, fingerprint, preload)


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
) -> Description:
    del fingerprint  # part of the key: a plug-in that was built anew is asked anew
    tried = ["--", *(f"{name}={value}" for name, value in settings)] if settings else []
    program = [str(native.child_path()), "--describe", str(path), *map(str, preload), *tried]
    answer = ask(program, dict(environment))
    said = answer.stderr.strip()
    if answer.code is None:
        asked = f" with {', '.join(tried[1:])}" if tried else ""
        raise InputError(f"backend {path}{asked}: {answer.ended}" + (f"\n{said}" if said else ""))
    if answer.code > 0:
        # Its own words come last; what libraries printed before is the rest of the reason.
        before, _, words = said.rpartition(_COMPLAINT)
        words = "\n".join(one.strip() for one in (words or "it cannot be loaded", before) if one.strip())
        raise InputError(words if settings else f"backend {path}: {words}")
    try:
        return Description.model_validate(json.loads(answer.stdout))
    except (ValueError, RecursionError, ValidationError) as error:
        words = f"what it says of itself cannot be read: {error}"
        if not answer.stdout:
            words = f"it ended the process that loaded it, with exit code 0\n{said}".rstrip()
        raise InputError(f"backend {path}: {words}") from None


_COMPLAINT = "timetrial-child: "
