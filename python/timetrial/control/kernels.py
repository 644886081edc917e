"""Which kernels the BLAS copies of a framework chose: read back, and compared with what this CPU has.

Old copies of OpenBLAS do not know new CPUs and take the kernels of 2005; a ranking of old frameworks would be
a ranking of that, unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from timetrial.cautions import Caution
from timetrial.core.cpu import openblas_core_missed, openblas_core_problem
from timetrial.processes.events import LoadedLibrary
from timetrial.records.model import Setting, SettingStatus

CORE_TYPE = "blas.core_type"
LIBRARY = "blas.library"
# With it every copy of OpenBLAS says at load what it chose, also one whose functions are hidden.
ANNOUNCE = {"OPENBLAS_VERBOSE": "2"}
_ANNOUNCED = re.compile(r"^Core: (\w+)$", re.MULTILINE)
_OPENBLAS = "OpenBLAS"
_GENERIC = "generic"  # BLIS's word for a CPU that it does not know
_PLAIN = "Prescott"  # the core type of OpenBLAS that is no better
_FOLDERS = re.compile(r".*/(?:site|dist)-packages/")
_OF_NUMPY = re.compile(r"(numpy|scipy)(\.libs)?/")

Loaded = Sequence[LoadedLibrary]  # what the contender says of its libraries


def announced(stderr: str) -> list[str]:
    """The core types that copies of OpenBLAS named on standard error."""
    return [core for core in _ANNOUNCED.findall(stderr) if _is_core(core)]


def judge_core_type(asked: str, loaded: Loaded, said: Iterable[str]) -> Setting:
    """By all copies of OpenBLAS that can be asked, and by those that announced theirs (`said`): all must have
    what was asked. Where only some do, nobody knows which of them works."""
    copies = [one for one in loaded if one.vendor == _OPENBLAS]
    silent = [place(one.path) for one in copies if not one.kernel]
    sources = [f"{one.kernel_getter} of {place(one.path)}: {one.kernel}" for one in copies if one.kernel]
    kernels = [one.kernel for one in copies if one.kernel]
    said = list(said)
    if said:
        sources.append(f"announced at load: {', '.join(said)}")
    if silent:
        sources.append(f"no choice of kernels in {', '.join(silent)}")
    others = [kernel for kernel in [*kernels, *said] if kernel.lower() != asked.lower()]
    agree = len(kernels) + len(said) - len(others)
    effective: str | None = None
    status: SettingStatus
    if others and not agree:
        status, effective = "ignored", others[0]
    elif others or silent or not agree:
        status = "unverifiable"
    else:
        status, effective = "applied", asked
    how = "; ".join(sources) or "no copy of OpenBLAS was found"
    return Setting(name=CORE_TYPE, asked=asked, effective=effective, how_read=how, status=status)


def old_kernels(loaded: Loaded, said: Iterable[str], known: Iterable[str], *, asked: bool) -> list[str]:
    """Warnings about BLAS copies whose kernels leave wide instructions of this CPU unused. `known`:
    the settings of the contender; one with `blas.core_type` computes with OpenBLAS, and unless it has
    `blas.library` with the copies of NumPy and SciPy, which are bystanders elsewhere. `asked`: whether the
    kernels were chosen by the user."""
    if asked:
        return []
    matters = CORE_TYPE in known
    uses_numpy = matters and LIBRARY not in known
    places: dict[str, list[str]] = {}
    for one in loaded:
        where = place(one.path)
        computes = uses_numpy or not _OF_NUMPY.match(where)
        if one.kernel and computes:
            places.setdefault(one.kernel, []).append(where)
    if uses_numpy:
        for core in said:
            places.setdefault(core, [])
    found = []
    for core, files in places.items():
        missed = openblas_core_missed(_PLAIN if core == _GENERIC else core)
        if missed is None:
            continue
        where = f" ({', '.join(files)})" if files else " (a copy inside another library)"
        no_better = core.lower() in (_GENERIC, "haswell", "zen") or openblas_core_problem("Haswell")
        seen = {"core": core, "cpu": missed, "where": where}
        if matters and not no_better:
            found.append(Caution.OLD_KERNEL_TO_CHOOSE.words(**seen, cure=f"{CORE_TYPE}=Haswell"))
        else:
            found.append(Caution.OLD_KERNEL.words(**seen))
    return found


def place(path: str) -> str:
    """'numpy.libs/libopenblas64_.so' of a file in site-packages, others in full."""
    return _FOLDERS.sub("", path, count=1)


def _is_core(word: str) -> bool:
    problem = openblas_core_problem(word)
    return problem is None or "has no such core type" not in problem
