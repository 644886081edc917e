"""Which library file a contender stands on: what was asked, or its default."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from timetrial.cases.case import Case
from timetrial.cases.settings import PARALLEL
from timetrial.errors import InputError, Unavailable
from timetrial.library_files import Kind, available, find, known_at
from timetrial.processes.events import Reading
from timetrial.processes.probe import ask
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
    soname: str = ""  # of a framework: the name by which its libraries ask for this one
    stands_in: bool = False  # of a framework: loaded first of all, in the place of the functions inside

    def variables(self, parallel: str | None) -> dict[str, str]:
        """What the library must find in the environment when it is loaded. A framework leaves its threads to
        the products."""
        default = PARALLEL[1] if self.soname or self.stands_in else PARALLEL[0]
        return {name: values[parallel or default] for name, values in self.environment.items()}


def choose_libraries(case: Case, backend: str | None) -> tuple[ChosenLibrary, ...]:
    """The libraries of a case. `backend` None: a plug-in given by its path, which has no defaults.

    Unavailable: known, but not installed. InputError: no such library, or no such file.
    """
    return tuple(
        _choose(setting, case.settings.get(setting.name, setting.default))
        for setting in LIBRARY_SETTINGS
        if setting.backend == backend or (backend is None and setting.name in case.settings)
    )


def choose_for_framework(
    case: Case, sonames: Mapping[str, str], stand_ins: Iterable[str]
) -> tuple[ChosenLibrary, ...]:
    """The BLAS libraries that a framework shall find under a name of its own choice (setting -> soname), and
    those that take the place of what it has inside (settings). No defaults: where nobody asks, the framework
    takes what the system has, or what it brought."""

    def chosen(name: str, *, soname: str = "", stands_in: bool = False) -> ChosenLibrary:
        found = _find(name, case.settings[name], "blas", preload=False, fortran=bool(soname))
        return replace(found, soname=soname, stands_in=stands_in)

    return (
        *(chosen(name, soname=soname) for name, soname in sonames.items() if name in case.settings),
        *(chosen(name, stands_in=True) for name in stand_ins if name in case.settings),
    )


def loaded_first(files: Iterable[Path]) -> dict[str, str]:
    """The variable that has the loader open these before all others."""
    paths = ":".join(map(str, files))
    return {"LD_PRELOAD": paths} if paths else {}


def link_libraries(chosen: Iterable[ChosenLibrary], folder: Path) -> dict[str, str]:
    """A folder of links under the names that are asked for, and the variable that puts it in front."""
    links = [one for one in chosen if one.soname]
    if not links:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    for one in links:
        (folder / one.soname).symlink_to(one.path.resolve())
    # Behind the links the libraries' own folders: MKL looks for its parts as the loader does.
    own = dict.fromkeys(str(one.path.resolve().parent) for one in links)
    return {"LD_LIBRARY_PATH": ":".join([str(folder), *own])}


# What a program calls that is linked to libblas.so.3 and its like, and what one that has a CBLAS inside.
_FORTRAN, _C = ("sgemm_", "a Fortran BLAS"), ("cblas_sgemm", "a CBLAS")


@lru_cache(maxsize=32)
def blas_problem(path: Path, *, fortran: bool) -> str | None:
    """Why a library cannot be a framework's BLAS, in words; None: it can. It is loaded in a process of its
    own: it may be broken."""
    function, interface = _FORTRAN if fortran else _C
    code = f"import ctypes, sys; ctypes.CDLL(sys.argv[1]).{function}"
    answer = ask([sys.executable, "-c", code, str(path)], {})
    if answer.code == 0:
        return None
    words = (answer.stderr.strip().splitlines() or [answer.ended])[-1]
    return f"{path} lacks the functions of {interface} ({words})"


def _choose(setting: LibrarySetting, word: str) -> ChosenLibrary:
    return _find(setting.name, word, setting.kind, preload=setting.preload)


def _find(name: str, word: str, kind: Kind, *, preload: bool, fortran: bool = False) -> ChosenLibrary:
    try:
        path = find(word, kind, fortran=fortran)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except Unavailable as error:
        raise Unavailable(f"{name}={error}") from None
    known = known_at(path)
    return ChosenLibrary(name, path, preload, known.environment if known else {})


def judge_library(
    name: str,
    asked: str | None,
    wanted: Path,
    reading: Reading,
    mapped: frozenset[Path],
    soname: str = "",
) -> Setting:
    """By the file that the plug-in says it opened, and by the files that the kernel has mapped (`mapped`,
    resolved; empty: nobody looked). Where the plug-in says nothing and a rival is mapped too, nobody knows
    which of them works. `soname`: the name under which the library is found; any other library of this name
    is a rival, and any other BLAS of the system."""
    real, said = wanted.resolve(), reading.effective
    families = {_family(real), *([_family(Path(soname))] if soname else [])}
    others = {path.resolve() for path in available("blas").values()} if soname else set()
    rivals = sorted(path for path in mapped - {real} if path in others or _family(path) in families)
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
    sources = [reading.how_read] if said and reading.how_read else []
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
