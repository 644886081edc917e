"""Which backends there are, and where each one's code lies on this machine."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from timetrial.cases.case import Case
from timetrial.cases.keys import is_callable_word
from timetrial.contenders.callables import OWN, SETUP, find_callable
from timetrial.contenders.functions import carried_folder, carried_from, shown
from timetrial.contenders.plugins import describe_plugin
from timetrial.contenders.revisions import SETTING as REVISION
from timetrial.contenders.revisions import Tree, tree_of
from timetrial.control.libraries import ChosenLibrary, choose_for_framework, choose_libraries
from timetrial.core import native
from timetrial.core.cpu import cpu_flags
from timetrial.core.native import BackendManifest
from timetrial.environments import (
    Framework,
    Interpreter,
    Version,
    check_runtime,
    find_interpreter,
    framework_in,
    locate,
    shipped_frameworks,
)
from timetrial.errors import InputError, Unavailable, nearest
from timetrial.hashing import file_hash
from timetrial.library_files import elf_problem
from timetrial.paths import user_path

RUNTIME_FOLDER = Path(__file__).resolve().parent.parent / "runtime"

Kind = Literal["native", "framework", "callable"]


@dataclass(frozen=True)
class Contender:
    """What will be started for a case."""

    name: str
    kind: Kind
    path: (
        Path  # of the plug-in (.so), of the adapter (adapter.py), of the program, or of the callable's module
    )
    fingerprint: str  # changes when the code or a library it stands on changes
    isa: str = ""
    interpreter: Interpreter | None = None  # of a framework or a callable
    version: Version | None = None  # of a framework, as environment.toml has it
    user_path: Path | None = None  # of the user's own install, where the version needs one
    settings: tuple[str, ...] = ()  # those it knows, besides the ones that every backend has
    flags: tuple[str, ...] = ()  # "reads_no_data", "unprovable", "profiles"
    libraries: tuple[ChosenLibrary, ...] = ()  # those it shall use
    tree: Tree | None = None  # of a callable that is imported from another checkout

    @property
    def preload(self) -> tuple[Path, ...]:
        """Libraries that the plug-in is linked to, opened before it."""
        return tuple(one.path for one in self.libraries if one.preload)

    def program(self, job: Path) -> list[str]:
        """The command line that the supervisor starts."""
        if self.interpreter is None or self.version is None:
            return [str(native.child_path()), str(job)]
        if self.version.program:
            return [str(self.interpreter.executable), str(self.path), str(job)]
        return [str(self.interpreter.executable), str(RUNTIME_FOLDER / "main.py"), str(job)]


def native_backends() -> dict[str, list[BackendManifest]]:
    """Name -> the manifests of its variants, best first."""
    found: dict[str, list[BackendManifest]] = {}
    for manifest in native.backend_manifests():
        found.setdefault(manifest.backend, []).append(manifest)
    return found


def known_backends() -> list[str]:
    """Every name that `backend` takes, whether or not it can run here."""
    return sorted({*native_backends(), *shipped_frameworks()})


class NotBuiltYet(Unavailable):
    """This machine has everything to build the plug-in, and the first run will."""


def resolve(case: Case, *, build: bool = True) -> Contender:
    """The contender of a case. InputError: no such thing. Unavailable: known, but not here.

    A plug-in that is built on the user's machine is built now; with `build` False, NotBuiltYet instead.
    """
    name = case.backend
    if is_callable_word(name):
        return _callable(name, case)
    _refuse(case, REVISION, "it is no step of your own")
    if name.endswith(".so") or "/" in name:
        return _from_path(user_path(name), case)
    variants = native_backends().get(name)
    if variants is not None:
        return _native(name, variants, case, build)
    framework = shipped_frameworks().get(name.partition("@")[0])
    if framework is not None:
        return _framework(framework, name.partition("@")[2], case)
    raise InputError(
        f"no backend is called {name!r}.{nearest(name.partition('@')[0], known_backends())} "
        "A path to a plug-in (.so) or to an adapter's folder is a backend too"
    )


def _from_path(path: Path, case: Case) -> Contender:
    word = ""
    if not path.exists() and "@" in path.name:
        path, word = path.with_name(path.name.rpartition("@")[0]), path.name.rpartition("@")[2]
    if path.is_dir():
        if not any((path / name).is_file() for name in ("adapter.py", "environment.toml")):
            raise InputError(
                f"backend {str(path)!r}: the folder has no adapter.py (see frameworks/README.md)"
            )
        return _framework(framework_in(path.resolve()), word, case)
    if not path.is_file():
        raise InputError(f"backend {str(path)!r}: there is no such file or folder")
    if path.suffix != ".so":
        raise InputError(f"backend {str(path)!r}: expected a plug-in (.so) or the folder of an adapter")
    problem = elf_problem(path)
    if problem is not None:
        raise InputError(f"backend {str(path)!r}: {problem}")
    _refuse(case, "isa", "a plug-in given by its path is one variant")
    _refuse(case, "python", "a native backend runs in no interpreter")
    return _plugin(path.stem, path.resolve(), choose_libraries(case, None))


def _native(name: str, variants: list[BackendManifest], case: Case, build: bool) -> Contender:
    _refuse(case, "python", "a native backend runs in no interpreter")
    flags = cpu_flags()
    libraries = choose_libraries(case, name)
    variants = [manifest for manifest in variants if manifest.fits(one.path for one in libraries)]
    isa = case.settings.get("isa")
    if isa is not None:
        known = [manifest.isa for manifest in variants if manifest.isa]
        chosen = next((manifest for manifest in variants if manifest.isa == isa), None)
        if chosen is None:
            what = f"it has {', '.join(known)}" if known else "it has only one variant"
            raise InputError(f"backend {name!r} has no variant isa={isa!r}: {what}")
        missing = [flag for flag in chosen.requires if flag not in flags]
        if missing:
            raise Unavailable(f"isa={isa} needs a CPU with {', '.join(missing)}")
    else:
        chosen = next((manifest for manifest in variants if flags.issuperset(manifest.requires)), None)
        if chosen is None:
            raise Unavailable(f"{name} needs a CPU with {', '.join(variants[-1].requires)}")
    return _plugin(name, chosen.library or _built(chosen.recipe, build), libraries)


def _built(recipe: str, build: bool) -> Path:
    """The plug-in that a recipe makes on this machine."""
    from timetrial import building  # it needs this package in its turn

    plan = building.make_plan(building.recipe_named(recipe))
    if build:
        return building.ensure(plan)
    found = building.lookup(plan)
    if found is None:
        raise NotBuiltYet(
            f"not built for {plan.target.name} yet, the first run does it: timetrial backends build {recipe}"
        )
    return found


def _plugin(name: str, path: Path, libraries: tuple[ChosenLibrary, ...]) -> Contender:
    hashes = [file_hash(file) for file in (path, *(one.path for one in libraries))]
    fingerprint = hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    described = describe_plugin(path, fingerprint, tuple(one.path for one in libraries if one.preload))
    return Contender(
        name,
        "native",
        path,
        fingerprint,
        isa=described.isa,
        settings=(*described.settings, *(one.setting for one in libraries if one.preload)),
        flags=tuple(described.flags),
        libraries=libraries,
    )


def _framework(framework: Framework, word: str, case: Case) -> Contender:
    _refuse(case, "isa", "a framework chooses its instructions itself")
    located = locate(framework, word, case.settings.get("python"))
    version, interpreter = located.version, located.interpreter
    if located.source == "named" and not version.program:
        check_runtime(interpreter)
    mode = case.settings.get("mode")
    if mode is not None and mode not in version.modes:
        raise InputError(f"mode={mode!r}: {case.backend} has {', '.join(version.modes) or 'no modes'}")
    runtime = RUNTIME_FOLDER.glob("lua/*.lua" if version.program else "*.py")
    parts = [file_hash(path) for path in sorted([*framework.folder.glob("*.*"), *runtime])]
    parts += [str(interpreter.executable), interpreter.version, json.dumps(located.found, sort_keys=True)]
    sonames = {name: table.soname for name, table in version.settings.items() if table.soname}
    stand_ins = [name for name, table in version.settings.items() if table.stands_in]
    libraries = choose_for_framework(case, sonames, stand_ins)
    parts += [file_hash(one.path) for one in libraries]
    return Contender(
        framework.name,
        "framework",
        framework.folder / (version.program or version.adapter),
        hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        interpreter=interpreter,
        version=version,
        user_path=located.path,
        settings=framework_settings(version),
        libraries=libraries,
    )


def framework_settings(version: Version) -> tuple[str, ...]:
    """Those that a version has beside everybody's."""
    keeps_cache = any("{cache}" in text for text in version.environment.values())
    modes, cache = ("mode",) if version.modes else (), ("cache",) if keeps_cache else ()
    return (*modes, *cache, *sorted(version.settings))


def _callable(word: str, case: Case) -> Contender:
    _refuse(case, "isa", "your own code chooses its instructions itself")
    interpreter = find_interpreter(case.settings.get("python"))
    check_runtime(interpreter)
    words = _words_of(word, case)
    for key, one in words.items():
        _check_carried(key, one, interpreter)
    tree = tree_of(case.settings[REVISION]) if REVISION in case.settings else None
    folders = import_folders(word, case, interpreter, tree)
    found = {key: find_callable(one, interpreter, folders, key, tree) for key, one in words.items()}
    module = found["callable"]
    parts = [
        file_hash(path) for path in sorted([*RUNTIME_FOLDER.glob("*.py"), *filter(None, found.values())])
    ]
    parts += [*words.values(), str(interpreter.executable), interpreter.version, str(tree)]
    return Contender(
        word,
        "callable",
        module or interpreter.executable,
        hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        interpreter=interpreter,
        version=OWN,
        settings=framework_settings(OWN),
        tree=tree,
    )


def _words_of(word: str, case: Case) -> dict[str, str]:
    """Of the functions of the user's that a contender calls, by key. InputError: `setup` is no such word."""
    setup = case.settings.get(SETUP)
    if setup is not None and not is_callable_word(setup):
        raise InputError(
            f"{SETUP} is {setup!r}; expected a function that is called first, package.module:function"
        )
    return {"callable": word, **({} if setup is None else {SETUP: setup})}


def _check_carried(key: str, word: str, interpreter: Interpreter) -> None:
    """InputError: a function that was carried out of a session of another Python, or needs cloudpickle."""
    python = carried_from(word)
    if python is None:
        return
    own = ".".join(interpreter.version.split(".")[:2])
    cure = 'Write it into a module and name it: "package.module:function".'
    if own != python:
        raise InputError(
            f"{key} '{shown(word)}' was carried out of a session of Python {python}, as its bytecode; "
            f"{interpreter.executable} is Python {own}. {cure}"
        )
    if interpreter.versions([("cloudpickle", "cloudpickle")])["cloudpickle"] is None:
        raise InputError(
            f"{key} '{shown(word)}' was carried out of a Python session, and {interpreter.executable} has no "
            f"cloudpickle to read it: {interpreter.executable} -m pip install cloudpickle. Or: {cure.lower()}"
        )


def _refuse(case: Case, setting: str, why: str) -> None:
    if setting in case.settings:
        raise InputError(
            f"{setting}={case.settings[setting]} does not apply to backend {case.backend!r}: {why}"
        )


def import_folders(word: str, case: Case, interpreter: Interpreter, tree: Tree | None = None) -> list[str]:
    """What a contender imports from beside its interpreter's own: the folders of carried functions, and in
    the running interpreter whatever that can import by its own means (an editable install, a user's folder),
    which the same interpreter must find without PYTHONPATH. Of the working tree's folders those of `tree`."""
    carried = filter(None, map(carried_folder, _words_of(word, case).values()))
    folders = [*map(str, carried), *(_running_sys_path() if interpreter.running else [])]
    return [str(tree.place(Path(one))) for one in folders] if tree else folders


def _running_sys_path() -> list[str]:
    return [str(Path(entry or ".").resolve()) for entry in sys.path if Path(entry or ".").is_dir()]
