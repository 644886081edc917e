"""Numerical libraries by name: where each may lie, how to get it, which one is on this machine."""

from __future__ import annotations

from timetrial.library_files.elf import elf_problem
from timetrial.library_files.finder import available, find, known_at, version_of
from timetrial.library_files.known import Kind, KnownLibrary, known_libraries

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
