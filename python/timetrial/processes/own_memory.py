"""The memory of this process, which contenders need more."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)


def give_back_freed() -> None:
    """Gives the machine what is free on the heap. glibc keeps it for whoever asks next: behind the judging of
    a batch of 256 that may be gigabytes, which heats reckon with. Without malloc_trim nothing happens."""
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)
