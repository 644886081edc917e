"""Which cap, or which lack, the last words of a contender are about."""

from __future__ import annotations

from timetrial.caps.caps import Caps

# As libc, loaders, allocators and frameworks say it, in lower case.
_MEMORY = (
    "out of memory",
    "not enough memory",
    "cannot allocate memory",
    "can't allocate memory",
    "bad_alloc",
    "memoryerror",
    "unable to allocate",
    "memory exhausted",
    "memory allocation failed",
    "memory allocation still failed",  # OpenBLAS, of its buffers
    "failed to map segment",  # of a library
    "zero-fill pages",
    "cannot create shared object descriptor",
    "no memory",
)
_THREADS = (
    "resource temporarily unavailable",
    "can't start new thread",
    "thread creation failed",
    "pthread_create failed",
    "blockingioerror",
)
_FILES = ("too many open files",)


def speaks_of_memory(words: str) -> bool:
    """Whether something says that it got no memory."""
    return any(one in words.lower() for one in _MEMORY)


def reached(words: str, caps: Caps) -> str | None:
    """The last line in which a contender with these caps says that it has run into one; None: in none."""
    about = [
        # A thread needs memory for its stack: under a limit of that its start fails too.
        (caps.memory_bytes is not None, (*_MEMORY, *_THREADS)),
        (caps.processes is not None, _THREADS),
        (caps.open_files is not None, _FILES),
    ]
    signs = [one for is_set, some in about if is_set for one in some]
    lines = reversed(words.splitlines())
    return next((line.strip() for line in lines if any(one in line.lower() for one in signs)), None)
