"""How much of the machine's memory the arrays of a data set may take."""

from __future__ import annotations

import os

SHARE = 0.5  # contenders need some, too


def memory_bytes() -> int:
    """Of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_too_much(needed: int) -> bool:
    """Whether arrays of so many bytes would leave too little."""
    return needed > SHARE * memory_bytes()
