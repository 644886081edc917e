"""Finds the compiled parts: the module `_core` and the native tree beside it.

Installed, both lie in this package's folder. In development the environment variable TIMETRIAL_NATIVE names
the native tree of a build folder (`build/release/native`); `_core` then lies beside that tree.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

from timetrial.errors import InputError, TimetrialError

ENVIRONMENT_VARIABLE = "TIMETRIAL_NATIVE"
_MODULE = "timetrial.core._core"


def load_core() -> ModuleType:
    """The compiled module, imported once. `timetrial.core` calls this before anything else."""
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if not folder:
        try:
            return importlib.import_module(_MODULE)
        except ModuleNotFoundError as error:
            if error.name != _MODULE:
                raise
            raise TimetrialError(
                f"timetrial's compiled part is missing from {Path(__file__).parent} for Python "
                f"{sys.version_info[0]}.{sys.version_info[1]}. Install the package (pip install .), or set "
                f"{ENVIRONMENT_VARIABLE} to the folder `native` of a build."
            ) from None
    candidates = [Path(folder).parent / f"_core{suffix}" for suffix in EXTENSION_SUFFIXES]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise InputError(
            f"{ENVIRONMENT_VARIABLE}={folder}: expected the folder `native` of a build, with "
            f"{candidates[0].name} beside it in {Path(folder).parent}. Build first, or unset the variable."
        )
    spec = importlib.util.spec_from_file_location(_MODULE, found)
    if spec is None or spec.loader is None:
        raise TimetrialError(f"{found} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[_MODULE]
        raise
    return module


@dataclass(frozen=True)
class BackendManifest:
    """One variant of a native backend, as the file beside its shared object describes it."""

    backend: str
    isa: str  # "" if it runs on every x86-64
    requires: tuple[str, ...]  # CPU flags, as /proc/cpuinfo names them
    library: Path | None  # None: it is built on the user's machine, see `recipe`
    rank: int  # the highest that the CPU can run is preferred
    recipe: str = ""  # by which it is built: a name of timetrial.building; "" if it came with timetrial
    needs: str = ""  # "libdnnl.so.2": for this library only; "" for whatever library is chosen

    def fits(self, libraries: Iterable[Path]) -> bool:
        """Whether it can be used with these libraries, by the name behind their links."""
        names = (path.resolve().name for path in libraries)
        return not self.needs or any(f"{name}.".startswith(f"{self.needs}.") for name in names)


@cache
def native_dir() -> Path:
    """The native tree: programs, backends, runtime."""
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if folder:
        return Path(folder).resolve()
    file = load_core().__file__
    if file is None:
        raise TimetrialError("the compiled module of timetrial does not say where it lies")
    return Path(file).resolve().parent / "native"


def _existing(path: Path) -> Path:
    if not path.exists():
        raise TimetrialError(f"{path} is missing: the install is incomplete. Install timetrial again.")
    return path


def child_path() -> Path:
    """timetrial-child, the native contender."""
    return _existing(native_dir() / "timetrial-child")


def exec_path() -> Path:
    """timetrial-exec, the supervisor."""
    return _existing(native_dir() / "timetrial-exec")


def runtime_dir() -> Path:
    """The folder with libtimetrial-c.so and the module `_timetrial_runtime` for every CPython from 3.6 on."""
    return _existing(native_dir() / "runtime")


def include_dir() -> Path:
    """The public headers, for plug-ins built elsewhere: g++ -I this folder."""
    return _existing(native_dir() / "include")


def sources_dir() -> Path:
    """The sources of the backends that are built on the user's machine, one folder each."""
    return _existing(native_dir() / "sources")


def read_manifest(path: Path) -> BackendManifest:
    """The manifest in a file."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        recipe = str(fields["recipe"]) if "recipe" in fields else ""
        return BackendManifest(
            backend=str(fields["backend"]),
            isa=str(fields["isa"]),
            requires=tuple(str(flag) for flag in fields["requires"]),
            library=None if recipe else path.parent / str(fields["library"]),
            rank=int(fields["rank"]),
            recipe=recipe,
            needs=str(fields["needs"]) if "needs" in fields else "",
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no backend manifest ({error!r}); expected JSON with backend, isa, "
            "requires, rank, and library or recipe"
        ) from error


def backend_manifests(folder: Path | None = None) -> list[BackendManifest]:
    """All variants of all backends in a folder (the native tree's own if not given), best variants first."""
    directory = folder if folder is not None else native_dir() / "backends"
    manifests = [read_manifest(path) for path in sorted(directory.glob("*.json"))]
    return sorted(manifests, key=lambda manifest: (manifest.backend, -manifest.rank))
