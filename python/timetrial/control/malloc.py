"""The settings `malloc.*`: how glibc's allocator gives memory back to the kernel.

A program that frees and asks for large arrays in every step gets them from the kernel anew, page by page, or
keeps them, by accident of its heap's layout: the same program then has none or thousands of minor page faults
a step, at about a microsecond each. The variables are read by glibc as the process starts (mallopt(3),
"Environment variables"), so they work in every contender whose allocator is glibc's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from timetrial.errors import InputError
from timetrial.records.model import Setting

VARIABLES = {
    "malloc.trim_threshold": "MALLOC_TRIM_THRESHOLD_",  # bytes free at the heap's end before it shrinks
    "malloc.top_pad": "MALLOC_TOP_PAD_",  # bytes to take from the kernel, or leave, beyond what is needed
    "malloc.mmap_max": "MALLOC_MMAP_MAX_",  # arrays that may live outside the heap; 0: none
    "malloc.mmap_threshold": "MALLOC_MMAP_THRESHOLD_",  # bytes from which on an array lives outside the heap
}
NAMES = tuple(VARIABLES)
# What `malloc=keep` stands for: the heap never shrinks, and no array lives outside it.
WHOLE = "malloc"
KEEP = {"malloc.trim_threshold": "1000000000", "malloc.mmap_max": "0"}
LARGEST = 2**31 - 1  # what glibc keeps of the number of maps; enough for the others
# Allocators that take the place of glibc's where they are loaded.
OTHERS = ("libjemalloc", "libtcmalloc", "libmimalloc", "libhoard")


def check(settings: Mapping[str, str]) -> None:
    """Raises InputError for a value that glibc would read as something else."""
    for name in NAMES:
        word = settings.get(name)
        if word is not None and not (word.isdecimal() and int(word) <= LARGEST):
            unit = "" if name == "malloc.mmap_max" else " of bytes"
            raise InputError(f"{name}={word!r}: expected a whole number{unit} from 0 to {LARGEST}")
    besides = sorted(name for name in settings if name.startswith(f"{WHOLE}."))
    if WHOLE in settings and besides:
        raise InputError(
            f"{WHOLE}={settings[WHOLE]} beside {', '.join(f'{name}={settings[name]}' for name in besides)}: "
            f"both say how the allocator behaves. Leave out {WHOLE}=, or {' and '.join(besides)}."
        )


def variables_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for what is asked."""
    asked = {**settings, **(KEEP if settings.get(WHOLE) == "keep" else {})}
    return {variable: asked[name] for name, variable in VARIABLES.items() if name in asked}


def judge(name: str, asked: str, environment: Mapping[str, str], mapped: Collection[Path]) -> Setting:
    """By the environment that the process was started with, and whether its allocator is glibc's."""
    other = next((path.name for path in mapped if path.name.startswith(OTHERS)), None)
    found: str | None
    if name == WHOLE:
        kept = all(environment.get(VARIABLES[one]) == value for one, value in KEEP.items())
        found = "keep" if kept else "default"
        source = f"{' and '.join(VARIABLES[one] for one in KEEP)} in /proc/PID/environ"
    else:
        found = environment.get(VARIABLES[name])
        source = f"{VARIABLES[name]} in /proc/PID/environ; glibc has no way to ask it back"
    if (
        name == WHOLE and other is not None
    ):  # somebody's own choice; nobody asked glibc's to do it in this program
        found, status, source = f"what {other} does", "adjusted", f"{other} takes the place of malloc"
    elif not environment:
        found, status, source = None, "unverifiable", "nobody looked"
    elif other is not None:
        found, status, source = None, "ignored", f"{other} takes the place of malloc"
    else:
        status = "applied" if found == asked else "ignored"
    return Setting.model_validate(
        {"name": name, "asked": asked, "effective": found, "how_read": source, "status": status}
    )
