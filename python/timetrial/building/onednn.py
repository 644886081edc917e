"""Debian's oneDNN 2.x, for the sources of the plug-in that comes with timetrial linked to oneDNN 3."""

from __future__ import annotations

import re
from pathlib import Path

from timetrial.building.target import Target
from timetrial.errors import Unavailable
from timetrial.library_files import known_libraries, version_of

_NAME = "onednn-debian"
# Every compiler looks here by itself; named once more, the folder would hide the compiler's own headers.
_HEADER = Path("/usr/include/oneapi/dnnl/dnnl_version.h")


def find_debian_onednn(header: Path = _HEADER) -> Target:
    """Unavailable, with the cure: not installed, no headers, or headers of another major version."""
    known = known_libraries()[_NAME]
    library = known.path()
    if library is None:
        raise Unavailable(f"{_NAME} is not installed ({known.package}): {known.cure}")
    major = (
        re.search(r"define\s+DNNL_VERSION_MAJOR\s+(\d+)", header.read_text()) if header.is_file() else None
    )
    if major is None:
        raise Unavailable(f"{_NAME} has no C++ headers here ({header} is missing): {known.cure}")
    if not library.name.endswith(f".so.{major.group(1)}"):
        raise Unavailable(
            f"{header} is of oneDNN {major.group(1)}, which does not fit {library}: {known.cure} --reinstall"
        )
    version = version_of(library) or major.group(1)
    return Target(f"oneDNN {version}", version, library, includes=(), link=(str(library),))
