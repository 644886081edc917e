"""Whether a launch computes with the library files with which its case was proven."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from timetrial.records.model import Library

# They allocate and do not compute; the setting malloc.library decides which of them there is.
ALLOCATORS = ("libjemalloc", "libtcmalloc", "libmimalloc")
# With another number of threads one may be there that was not.
OPENMP = ("libgomp", "libiomp", "libomp")


def other_libraries(
    mapped: Sequence[Library], proven: Sequence[Library], *, more: bool = False
) -> str | None:
    """In words, the first of the libraries mapped by a launch that the proof had not, or had as another file.
    None: there is none. `more`: it may have an OpenMP runtime that the proof had not."""
    known = _by_name(proven)
    for name, hashes in _by_name(mapped).items():
        if name.startswith(ALLOCATORS) or (more and name not in known and name.startswith(OPENMP)):
            continue
        if name not in known:
            return f"computes with {name}, which the kept proof had not"
        if not hashes <= known[name]:
            was, now = (" or ".join(sorted(str(one)[:12] for one in some)) for some in (known[name], hashes))
            return f"computes with another {name} than the kept proof (sha256 {now}, was {was})"
    return None


def _by_name(libraries: Sequence[Library]) -> dict[str, set[str | None]]:
    """Hashes by the names of the files."""
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    for one in libraries:
        found[Path(one.path).name].add(one.sha256)
    return dict(found)
