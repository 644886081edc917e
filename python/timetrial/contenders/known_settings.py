"""Every setting with its facts: values, default, who applies it, who has it, how it is read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from timetrial.cases.case import Case, Workload
from timetrial.cases.settings import SETTINGS
from timetrial.contenders.callables import OWN
from timetrial.contenders.registry import framework_settings, native_backends, resolve
from timetrial.control.libraries import LIBRARY_SETTINGS
from timetrial.environments import shipped_frameworks
from timetrial.errors import InputError, TimetrialError, nearest

EVERYBODY = "every contender"
APPLIED = {
    "parent": "before the contender starts",
    "program": "by the contender's program, before it loads its library and before its steps",
    "contender": "by the contender, before it computes",
}
# Of a plug-in that is built on the user's machine, until it is: then its description says it.
_UNBUILT = {"libtorch": ("parallel", "torch.mkldnn", "torch.memory_format", "lengths")}


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
    native = [backend for backend, names in _native().items() if name in names]
    return (*native, *_frameworks(name), *(("a step of your own",) if name in OWN.settings else ()))


@cache
def _native() -> dict[str, tuple[str, ...]]:
    """Backend -> the settings that its plug-in, as it is here, says it has."""
    found = {}
    for backend in sorted(native_backends()):
        try:
            contender = resolve(Case(backend, Workload("mlp", "synthetic", 1, {})), build=False)
            found[backend] = contender.settings
        except TimetrialError:
            found[backend] = _UNBUILT.get(backend, ())
    return found


def _frameworks(name: str) -> list[str]:
    """Of which some version has it."""
    return [
        framework
        for framework, known in shipped_frameworks().items()
        if any(name in framework_settings(version) for version in known.versions)
    ]
