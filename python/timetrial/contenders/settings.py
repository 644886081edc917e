"""The settings of one contender: checked before anything starts, and how each is handed over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from timetrial.caps import caps
from timetrial.cases.case import Case
from timetrial.cases.environment import PREFIX
from timetrial.cases.settings import (
    COMMON_SETTINGS,
    DEMANDS,
    PARENT_SETTINGS,
    PROCESS_SETTINGS,
    SETTINGS,
)
from timetrial.contenders.compile_cache import PLUGIN_VARIABLE
from timetrial.contenders.plugins import try_settings
from timetrial.contenders.registry import Contender
from timetrial.control import allocator, blas_variables, huge_pages, malloc, niceness, openmp, sampling
from timetrial.control.cpus import allowed_cpus, format_cpus
from timetrial.control.kernels import ANNOUNCE, CORE_TYPE
from timetrial.control.libraries import blas_problem, link_libraries, loaded_first
from timetrial.control.topology import COMPACT, EACH, WORDS, resolve
from timetrial.core.cpu import openblas_core_problem
from timetrial.errors import InputError, TimetrialError, Unavailable, nearest


def validate_settings(case: Case, contender: Contender, *, spanned: Collection[str] = ()) -> None:
    """Against this machine and this install, before anything starts.

    More threads or other cores than this process may use is a row `unavailable` (Unavailable) where the
    setting is one of `spanned` (an axis), bad input (InputError) where one value was asked.
    """
    known = (*COMMON_SETTINGS, *contender.settings)
    for name in case.settings:
        if name not in known and not name.startswith(PREFIX):
            words = f"backend {case.backend!r} has no setting {name!r}.{nearest(name, set(known))}"
            # In an axis that spans every contender, some lack what others have.
            raise _beyond(name in PROCESS_SETTINGS and name in spanned, words)
    for name, word in case.settings.items():
        values = SETTINGS[name].values if name in SETTINGS else ()
        if values and word not in values:
            raise InputError(f"{name}={word!r}: expected {' or '.join(values)}.{nearest(word, values)}")
        own = contender.version.settings.get(name) if contender.version else None
        if own is not None and own.values and word not in own.values:
            raise _beyond(
                name in spanned, f"{name}={word!r}: backend {case.backend!r} has {', '.join(own.values)}"
            )
    malloc.check(case.settings)
    sampling.check(case.settings)
    openmp.check(case.settings)
    blas_variables.check(case.settings)
    caps.check(case.settings)
    _check_on_this_machine(case, spanned)
    allowed = allowed_cpus()
    for name in ("threads", "inter_op_threads"):
        _check_threads(case, name, allowed, is_axis=name in spanned)
    affinity = case.settings.get("affinity")
    if affinity is not None:
        outside = resolve(affinity, case.settings.get("threads"), allowed) - allowed
        if outside:
            raise _beyond(
                "affinity" in spanned,
                f"affinity={affinity}: this process may not use core {format_cpus(outside)}, "
                f"only {format_cpus(allowed)}",
            )
    _check_libraries(case, contender, spanned)
    _try_settings(case, contender, spanned)


def _check_threads(case: Case, name: str, allowed: frozenset[int], *, is_axis: bool) -> None:
    """More threads than processors are meant where the processors are named beside them."""
    threads = case.settings.get(name)
    is_meant = case.settings.get("affinity", COMPACT) not in WORDS
    if threads is None:
        return
    if not threads.isdecimal() or int(threads) < 1:
        raise InputError(f"{name}={threads!r}: expected a whole number from 1 to {len(allowed)}")
    if int(threads) > len(allowed) and not is_meant:
        raise _beyond(
            is_axis,
            f"{name}={threads}: this process may use {len(allowed)} "
            f"processor{'s' if len(allowed) > 1 else ''} (cores {format_cpus(allowed)})",
        )


def _check_on_this_machine(case: Case, spanned: Collection[str]) -> None:
    """What somebody else may have: a library, a permission."""
    checks: dict[str, Callable[[Mapping[str, str]], object]] = {
        allocator.NAME: allocator.allocator_of,
        huge_pages.NAME: huge_pages.check,
        niceness.NAME: niceness.check,
    }
    for name, check in checks.items():
        try:
            check(case.settings)
        except InputError as error:
            raise _beyond(name in spanned, str(error)) from None


def _check_libraries(case: Case, contender: Contender, spanned: Collection[str]) -> None:
    """What a framework would only show by dying: kernels above the CPU, a library that cannot stand in.
    Native backends judge these themselves."""
    if contender.kind == "native":
        return
    core = case.settings.get(CORE_TYPE)
    problem = openblas_core_problem(core) if core is not None else None
    if problem is not None:
        raise _beyond(CORE_TYPE in spanned, f"{CORE_TYPE}={core}: {problem}")
    for library in contender.libraries:
        problem = blas_problem(library.path, fortran=bool(library.soname))
        if problem is not None:
            raise _beyond(library.setting in spanned, f"{library.setting}: {problem}")


def _try_settings(case: Case, contender: Contender, spanned: Collection[str]) -> None:
    """What only the plug-in and its library can judge: a file that is no CBLAS, an ISA that is none."""
    settings = job_settings(case, contender)
    settings = {name: word for name, word in settings.items() if not _is_of_program(name)}
    if contender.kind != "native" or not settings.keys() - {"threads"}:
        return
    environment = setting_environment(case, contender)
    try:
        try_settings(contender.path, contender.fingerprint, contender.preload, settings, environment)
    except InputError as error:
        # A bad value is bad input, unless an axis brings together what does not go together: the words name
        # the settings that they are about. A process that died has named none.
        about = [name for name in settings if f"{name} = '" in str(error)] or list(settings)
        raise _beyond(any(name in spanned for name in about), str(error)) from None


def _is_of_program(name: str) -> bool:
    return name in SETTINGS and SETTINGS[name].by == "program"


def _beyond(is_axis: bool, words: str) -> TimetrialError:
    return Unavailable(words) if is_axis else InputError(words)


def job_settings(case: Case, contender: Contender) -> dict[str, str]:
    """What the contender is told: the words asked, the mode in any case, and of libraries that it opens
    itself their files."""
    unheard = {*PARENT_SETTINGS, *DEMANDS} - set(contender.settings)
    unheard |= {name for name in case.settings if name.startswith(PREFIX)}
    asked = {name: str(value) for name, value in case.settings.items() if name not in unheard}
    if contender.version is not None and contender.version.modes:
        asked.setdefault("mode", contender.version.modes[0])
    for library in contender.libraries:
        if library.preload:
            asked.pop(library.setting, None)
        else:
            asked[library.setting] = str(library.path)
    return asked


def setting_environment(
    case: Case, contender: Contender, *, cache: Path | None = None, links: Path | None = None
) -> dict[str, str]:
    """The variables that a library reads its settings from: OMP_NUM_THREADS, MKL_THREADING_LAYER; and those
    that a framework's environment.toml always sets, with `cache` the folder of its compile caches, or of what
    a plug-in chose by trial. `links`: a folder to make, where libraries are found under other names than
    theirs."""
    parallel = case.settings.get("parallel")
    variables = {k: v for one in contender.libraries for k, v in one.variables(parallel).items()}
    for source in (malloc, openmp, huge_pages, blas_variables):
        variables |= source.variables_of(case.settings)
    variables |= loaded_first(_first_of_all(case, contender))
    version = contender.version
    if version is None:
        return variables | ({} if cache is None else {PLUGIN_VARIABLE: str(cache)})
    places = {"cache": str(cache or ""), "path": str(contender.user_path or "")}
    variables |= {name: text.format(**places) for name, text in version.environment.items()}
    for name, table in version.settings.items():
        if name in case.settings:
            variables |= dict.fromkeys(table.environment, str(case.settings[name]))
    if CORE_TYPE in case.settings:
        variables |= ANNOUNCE
    if links is not None:
        variables |= link_libraries(contender.libraries, links)
    return variables


def _first_of_all(case: Case, contender: Contender) -> list[Path]:
    """What stands in for something that the contender has anyway: its allocator, the BLAS inside it."""
    own = allocator.allocator_of(case.settings)
    blas = [one.path.resolve() for one in contender.libraries if one.stands_in]
    return [*([own] if own else []), *blas]


def bound_processors(
    case: Case, contender: Contender, chosen: frozenset[int] | None = None
) -> frozenset[int] | None:
    """Those `chosen` for the launch, otherwise the first n that we may use, for a framework whose only proven
    way to n threads is a mask of processors, unless the case names its own; None for the others."""
    table = contender.version.settings.get("threads") if contender.version else None
    if table is None or not table.affinity or "threads" not in case.settings or "affinity" in case.settings:
        return None
    return chosen or frozenset(sorted(allowed_cpus())[: int(case.settings["threads"])])


def pins_of(case: Case) -> frozenset[int] | None:
    """The processors of which each of its threads shall have one; None: it may have all."""
    return _named(case) if case.settings.get("affinity") == EACH else None


def _named(case: Case) -> frozenset[int]:
    return resolve(case.settings["affinity"], case.settings.get("threads"), allowed_cpus())


def affinity_of(case: Case, contender: Contender, chosen: frozenset[int] | None = None) -> str | None:
    """The processors to which the supervisor binds the contender: those asked, those `chosen` for the launch,
    or those for its threads."""
    if "affinity" in case.settings:
        return format_cpus(_named(case))
    bound = bound_processors(case, contender, chosen) or chosen
    return None if bound is None else format_cpus(bound)
