"""Numerical libraries by name: where each may lie, how to get it, which one is on this machine."""

from __future__ import annotations

from timetrial.libraries.elf import elf_problem
from timetrial.libraries.finder import available, find, known_at, version_of
from timetrial.libraries.known import Kind, KnownLibrary, known_libraries

__all__ = [
    "Kind",
    "KnownLibrary",
    "available",
    "elf_problem",
    "find",
    "known_at",
    "known_libraries",
    "version_of",
]
