"""From the word of a user (a name or a path) to the file of a library."""

from __future__ import annotations

import re
from pathlib import Path

from timetrial.errors import InputError, Unavailable, nearest
from timetrial.library_files.elf import elf_problem
from timetrial.library_files.known import Kind, KnownLibrary, known_libraries
from timetrial.paths import user_path

# "libopenblasp-r0.3.21.so" and "libdnnl.so.2.6" name a version; "libblis.so.4" only an interface.
_VERSION_IN_NAME = re.compile(r"(?:-r?|\.so\.)(\d+(?:\.\d+)+)(?:\.so)?$")


def known_by_name(name: str, kind: Kind | None = None) -> KnownLibrary:
    """The library of a name; InputError for any other word, or for a library of another kind."""
    libraries = known_libraries()
    names = [one.name for one in libraries.values() if kind in (None, one.kind)]
    if name in names:
        return libraries[name]
    what = f"{kind} library" if kind else "library"
    raise InputError(f"no {what} is called {name!r}.{nearest(name, names)} A path to a file (.so) is one too")


def is_path(word: str) -> bool:
    """Whether a word means a file and not a name."""
    return "/" in word or word.endswith(".so") or ".so." in word


def find(word: str, kind: Kind | None = None, *, fortran: bool = False) -> Path:
    """The file of a known name or of a path, absolute; nothing is loaded. `fortran`: the one with the names
    of Fortran, where a library has two.

    Unavailable: a known name that is not installed, with the command that installs it. InputError: no such
    name, no such file, or no shared object of this machine.
    """
    if is_path(word):
        path = user_path(word).absolute()
        problem = elf_problem(path)
        if problem is not None:
            raise InputError(f"{word!r}: {problem}. Expected a shared object (.so)")
        return path
    library = known_by_name(word, kind)
    found = library.fortran_path() if fortran else library.path()
    if found is None:
        source = library.distribution or library.package
        raise Unavailable(f"{word} is not installed ({source}): {library.cure}")
    return found


def available(kind: Kind | None = None) -> dict[str, Path]:
    """Name -> file of every known library that is installed."""
    found = {
        name: library.path() for name, library in known_libraries().items() if kind in (None, library.kind)
    }
    return {name: path for name, path in found.items() if path is not None}


def known_at(path: Path) -> KnownLibrary | None:
    """The known library that this file is, by whatever path it was reached."""
    real = path.resolve()
    return next(
        (one for one in known_libraries().values() if real in _files_of(one)),
        None,
    )


def _files_of(library: KnownLibrary) -> set[Path]:
    return {path.resolve() for path in (library.path(), library.fortran_path()) if path is not None}


def version_of(path: Path) -> str | None:
    """The version of a known library, where it can be known without loading: from the distribution that
    installed it, or from the file's name. None for other files: the number behind their .so is no version."""
    library = known_at(path)
    if library is None:
        return None
    in_name = _VERSION_IN_NAME.search(path.resolve().name)
    return library.version() or (in_name.group(1) if in_name else None)
