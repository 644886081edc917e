"""Settings that a BLAS reads from its environment: how long OpenBLAS's threads spin, MKL's branch.

OpenBLAS (driver/others/blas_server.c) has threads of its own wait for 2^n turns of the processor's clock
until they sleep, 2^26 unless OPENBLAS_THREAD_TIMEOUT says so, and no function tells. MKL computes by the
branch that MKL_CBWR names ("Conditional Numerical Reproducibility" in its developer guide), so that results
are the same on every CPU that has it; MKL_CBWR_Get() tells, where the copy exports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timetrial.errors import InputError
from timetrial.processes.events import LoadedLibrary
from timetrial.records.model import Setting, SettingStatus

TIMEOUT, BRANCH = "blas.thread_timeout", "mkl.cbwr"
VARIABLES = {TIMEOUT: "OPENBLAS_THREAD_TIMEOUT", BRANCH: "MKL_CBWR"}
LEAST, MOST = 4, 30  # what OpenBLAS cuts it to
_SILENT = "the library does not tell"  # cblas's word for it
_OTHER_THREADS = {
    "USE_OPENMP": "an OpenBLAS on OpenMP, whose threads wait by openmp.wait_policy",
    "SINGLE_THREADED": "an OpenBLAS that was built for one thread",
}


def check(settings: Mapping[str, str]) -> None:
    """InputError for a number that OpenBLAS would read as another."""
    word = settings.get(TIMEOUT)
    if word is not None and not (word.isdecimal() and LEAST <= int(word) <= MOST):
        raise InputError(f"{TIMEOUT}={word!r}: expected a whole number from {LEAST} to {MOST}")


def variables_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for what is asked."""
    return {variable: settings[name] for name, variable in VARIABLES.items() if name in settings}


def copies_of(loaded: Sequence[LoadedLibrary], facts: Mapping[str, str]) -> list[LoadedLibrary]:
    """The BLAS copies of a contender: those that it was asked for, or the one of which a plug-in tells."""
    if loaded or "blas.version" not in facts:
        return [one for one in loaded if one.kind == "blas"]
    version, kernel = facts["blas.version"], facts.get("blas.kernel")
    names = {"OpenBLAS": "OpenBLAS", "Math Kernel Library": "MKL"}
    vendor = next((name for part, name in names.items() if part in version), None)
    told = None if kernel == _SILENT else kernel
    return [LoadedLibrary(path="", kind="blas", vendor=vendor, version=version, kernel=told)]


def judge_timeout(asked: str, environment: Mapping[str, str], copies: Sequence[LoadedLibrary]) -> Setting:
    """By the environment that the process was started with, and what threads each OpenBLAS has."""
    variable = VARIABLES[TIMEOUT]
    source = f"{variable} in /proc/PID/environ; OpenBLAS has no way to ask it back"
    found = environment.get(variable)
    openblas = [one.version or "" for one in copies if one.vendor == "OpenBLAS"]
    others = [next((why for word, why in _OTHER_THREADS.items() if word in one), "") for one in openblas]
    status: SettingStatus
    if not environment:
        effective, status, source = None, "unverifiable", "nobody looked"
    elif not openblas or all(others):
        effective, status = (others[0] if others else "no OpenBLAS is loaded"), "ignored"
    else:
        effective, status = found, "applied" if found == asked else "ignored"
    return Setting(name=TIMEOUT, asked=asked, effective=effective, how_read=source, status=status)


def judge_branch(asked: str, copies: Sequence[LoadedLibrary]) -> Setting:
    """By every copy of MKL that tells; one that does not leaves nobody knowing."""
    mkl = [one for one in copies if one.vendor == "MKL"]
    told = sorted({one.kernel.replace(".", "_") for one in mkl if one.kernel})
    source = next((one.kernel_getter for one in mkl if one.kernel_getter), "") or "MKL_CBWR_Get()"
    status: SettingStatus
    if not mkl:
        effective, status = "no MKL is loaded", "ignored"
    elif any(one != asked for one in told):
        effective, status = ", ".join(told), "ignored"
    elif any(not one.kernel for one in mkl):
        effective, status, source = None, "unverifiable", "a copy of MKL does not export MKL_CBWR_Get()"
    else:
        effective, status = asked, "applied"
    return Setting(name=BRANCH, asked=asked, effective=effective, how_read=source, status=status)
