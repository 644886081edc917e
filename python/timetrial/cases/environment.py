"""[environment]: variables that an experiment gives its contenders."""

from __future__ import annotations

from collections.abc import Mapping

from timetrial.errors import InputError

PREFIX = "environment."  # of a key: environment.DATA=/data
# These decide where a launch's files go; an experiment that changed them would write elsewhere.
RESERVED = ("HOME", "TMPDIR")
# Bytes of one variable, name and value: Linux starts no program with more (MAX_ARG_STRLEN).
_LONGEST = 131_000


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Those that a case has beside the experiment's, by their names without PREFIX."""
    return {key[len(PREFIX) :]: str(value) for key, value in settings.items() if key.startswith(PREFIX)}


def check_environment(asked: Mapping[str, str], where: str) -> None:
    """InputError for what no contender can be given."""
    place = f"{where}, [environment]"
    for name, value in asked.items():
        if name in RESERVED:
            raise InputError(f"{place}: {name} lies inside the launch's folder and cannot be set. Remove it.")
        if not name or "=" in name or "\0" in name:
            raise InputError(f"{place}: {name!r} is no name of an environment variable.")
        if "\0" in value:
            raise InputError(f"{place}: {name} is {value!r}; no variable can hold a NUL.")
        if (size := len(f"{name}={value}".encode(errors="surrogateescape"))) > _LONGEST:
            raise InputError(
                f"{place}: {name[:60]} has {size} bytes, {_LONGEST} are the most that Linux takes."
            )
