"""Which library file a native contender stands on: what was asked, or its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timetrial.errors import InputError, Unavailable
from timetrial.experiment.case import Case
from timetrial.experiment.keys import PARALLEL
from timetrial.libraries import Kind, find, known_at
from timetrial.records.model import Setting, SettingStatus


@dataclass(frozen=True)
class LibrarySetting:
    """A setting whose value is a library: a name (`timetrial list libraries`) or a path."""

    name: str
    words: str
    backend: str  # that has it
    kind: Kind
    default: str
    # True: the plug-in is linked to the library, which is opened before it and never hears of the setting.
    # False: the plug-in opens the file itself and gets its path as the setting's value.
    preload: bool


LIBRARY_SETTINGS = (
    LibrarySetting(
        "blas.library", "the BLAS that cblas calls", "cblas", "blas", "openblas-scipy", preload=False
    ),
    LibrarySetting(
        "onednn.library",
        "the oneDNN that onednn is linked to",
        "onednn",
        "onednn",
        "onednn-pypi",
        preload=True,
    ),
)


@dataclass(frozen=True)
class ChosenLibrary:
    """The file that a contender shall use, by the value of `setting`."""

    setting: str
    path: Path
    preload: bool
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def variables(self, parallel: str | None) -> dict[str, str]:
        """What the library must find in the environment when it is loaded."""
        return {name: values[parallel or PARALLEL[0]] for name, values in self.environment.items()}


def choose_libraries(case: Case, backend: str | None) -> tuple[ChosenLibrary, ...]:
    """The libraries of a case. `backend` None: a plug-in given by its path, which has no defaults.

    Unavailable: known, but not installed. InputError: no such library, or no such file.
    """
    return tuple(
        _choose(setting, case.settings.get(setting.name, setting.default))
        for setting in LIBRARY_SETTINGS
        if setting.backend == backend or (backend is None and setting.name in case.settings)
    )


def _choose(setting: LibrarySetting, word: str) -> ChosenLibrary:
    try:
        path = find(word, setting.kind)
    except InputError as error:
        raise InputError(f"{setting.name}: {error}") from None
    except Unavailable as error:
        raise Unavailable(f"{setting.name}={error}") from None
    known = known_at(path)
    return ChosenLibrary(setting.name, path, setting.preload, known.environment if known else {})


def judge_library(
    name: str, asked: str | None, wanted: Path, reading: Mapping[str, Any], mapped: frozenset[Path]
) -> Setting:
    """By the file that the plug-in says it opened, and by the files that the kernel has mapped (`mapped`,
    resolved; empty: nobody looked). Where the plug-in says nothing and a rival is mapped too, nobody knows
    which of them works."""
    real, said = wanted.resolve(), reading.get("effective")
    rivals = sorted(path for path in mapped - {real} if _family(path) == _family(real))
    status: SettingStatus
    if not mapped:
        opened, status = (Path(said) if said else None), "unverifiable"
    elif said:
        opened = Path(said)
        status = "applied" if opened.resolve() == real and real in mapped else "ignored"
    elif real in mapped:
        opened, status = real, "unverifiable" if rivals else "applied"
    else:
        opened, status = (rivals[0] if rivals else None), "ignored"
    sources = [str(reading["how_read"])] if said and reading.get("how_read") else []
    if mapped:
        sources.append("mapped files" + (f", also {', '.join(map(str, rivals))}" if rivals else ""))
    return Setting(
        name=name,
        asked=asked,
        effective=None if opened is None else str(opened),
        how_read="; ".join(sources) or "nothing reports it",
        status=status,
    )


def _family(path: Path) -> str:
    """'libdnnl' of libdnnl.so.3.2."""
    return path.name.partition(".so")[0]
