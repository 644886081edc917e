"""Every setting with its facts: values, default, who applies it, who has it, how it is read back."""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.cases.settings import SETTINGS
from timetrial.control.libraries import LIBRARY_SETTINGS
from timetrial.errors import InputError, nearest

EVERYBODY = "every contender"
APPLIED = {
    "parent": "before the contender starts",
    "program": "by the contender's program, before it loads its library and before its steps",
    "contender": "by the contender, before it computes",
}
# Settings of native backends; what a plug-in has is in its description, which only a built one tells.
_NATIVE = {
    "parallel": ("cblas", "eigen", "libtorch", "onednn"),
    "blas": ("cblas",),
    "onednn": ("onednn",),
    "torch": ("libtorch",),
    "reference": ("reference",),
    "null": ("null",),
}


@dataclass(frozen=True)
class KnownSetting:
    """One of them. `values` empty: others, as in `words`."""

    name: str
    words: str
    values: tuple[str, ...]
    default: str
    applied: str  # when, and by whom
    contenders: tuple[str, ...]  # that have it
    read: str  # what shows that it took effect


def known_settings(name: str | None = None) -> list[KnownSetting]:
    """All of them, or one. InputError: there is no such setting."""
    found = [
        KnownSetting(
            key, kind.words, kind.values, kind.default, APPLIED[kind.by], _contenders(key, kind.of), kind.read
        )
        for key, kind in SETTINGS.items()
    ]
    found += [
        KnownSetting(
            one.name,
            f"{one.words}: {one.name}={one.default}, another name or a path",
            (),
            one.default,
            APPLIED["parent" if one.preload else "contender"],
            _contenders(one.name, "some"),
            "the file that it says it opened, and the files that the kernel has mapped",
        )
        for one in LIBRARY_SETTINGS
    ]
    places = {one.name.partition(".")[0]: place for place, one in reversed(list(enumerate(found)))}
    found.sort(key=lambda one: places[one.name.partition(".")[0]])
    if name is not None:
        names = [one.name for one in found]
        if name not in names:
            raise InputError(f"There is no setting '{name}'.{nearest(name, names)}")
        found = [one for one in found if one.name == name]
    return found


def _contenders(name: str, of: str) -> tuple[str, ...]:
    if of == "all":
        return (EVERYBODY,)
    native = _NATIVE.get(name, _NATIVE.get(name.partition(".")[0], ()))
    return (*native, *(one for one in _frameworks(name) if one not in native))


def _frameworks(name: str) -> list[str]:
    """Of which some version has it."""
    from timetrial.environments import shipped_frameworks

    found = []
    for framework, known in shipped_frameworks().items():
        for version in known.versions:
            keeps_cache = any("{cache}" in text for text in version.environment.values())
            has = {
                *version.settings,
                *(["mode"] if version.modes else []),
                *(["cache"] if keeps_cache else []),
            }
            if name in has:
                found.append(framework)
                break
    return found
