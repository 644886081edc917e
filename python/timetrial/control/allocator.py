"""The setting `malloc.library`: an allocator in the place of glibc's, loaded first of all (LD_PRELOAD)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from timetrial.errors import InputError, Unavailable
from timetrial.library_files import find
from timetrial.records.model import Setting, SettingStatus

NAME = "malloc.library"


def allocator_of(settings: Mapping[str, str]) -> Path | None:
    """The file of the allocator that is asked for; None: glibc's own.

    Unavailable: known, not installed. InputError: no such allocator, no such file, or for another machine.
    """
    word = settings.get(NAME)
    if word is None:
        return None
    try:
        return find(word, "allocator").resolve()
    except InputError as error:
        raise InputError(f"{NAME}: {error}") from None
    except Unavailable as error:
        raise Unavailable(f"{NAME}={error}") from None


def judge(settings: Mapping[str, str], mapped: Collection[Path], others: Collection[Path]) -> Setting:
    """By the files that the kernel has mapped. `others`: allocators among them. One that a library took along
    beside the one that was asked for leaves nobody knowing which of them works."""
    wanted = allocator_of(settings)
    rivals = sorted(path for path in others if path != wanted)
    status: SettingStatus
    if not mapped:
        effective, status = None, "unverifiable"
    elif wanted in mapped:
        effective, status = str(wanted), "unverifiable" if rivals else "applied"
    else:
        effective, status = str(rivals[0]) if rivals else "glibc's", "ignored"
    also = f", also {', '.join(map(str, rivals))}" if rivals else ""
    return Setting(
        name=NAME, asked=settings[NAME], effective=effective, how_read=f"mapped files{also}", status=status
    )
