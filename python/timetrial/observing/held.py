"""What a contender holds in memory, phase by phase, told apart by what is behind its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from timetrial.core.observer import Observation
from timetrial.records.model import Memory, MemoryAt, MemoryPhase, Phase

ORDER: tuple[MemoryPhase, ...] = get_args(MemoryPhase)
Stretch = tuple[Observation, Observation]  # two looks, and nothing that we know of in between


def anonymous_peak(stretches: Iterable[Stretch], window_bytes: int) -> int:
    """The most private memory that was held in stretches of time, which no file is behind.

    The kernel keeps a peak of all resident pages only. When it was reached, no more pages of files and of
    shared memory were there than at the look before or after, as long as these become only more or fewer in
    between; the recorder's window, which is shared memory, may have been there as well. So it is at least the
    peak without the larger of the two, and exactly that where the others' pages stay.
    """
    most = 0
    for before, after in stretches:
        files = max(before.file_rss_bytes, after.file_rss_bytes)
        shared = max(before.shared_rss_bytes, after.shared_rss_bytes, window_bytes)
        most = max(most, after.peak_rss_bytes - files - shared, before.anonymous_bytes, after.anonymous_bytes)
    return most


class Held:
    """Of one contender: its looks at the ends of phases become entries of the record."""

    def __init__(self) -> None:
        self._at: dict[MemoryPhase, MemoryAt] = {}

    def said(self, phases: Sequence[Phase]) -> None:
        """What it said of itself before anybody else could look."""
        for phase in ORDER:
            found = next((one for one in phases if one.name == phase), None)
            if found and found.rss_bytes is not None and found.mapped_bytes is not None:
                anonymous = max(0, found.rss_bytes - found.mapped_bytes)
                self._at[phase] = MemoryAt(
                    phase=phase, resident_bytes=found.rss_bytes, anonymous_bytes=anonymous
                )

    def ends(self, phase: MemoryPhase, seen: Observation, peak: int | None) -> None:
        """A look at its end. A phase that comes again has its last state, and the peak of all."""
        known = self._at.get(phase)
        peaks = [one for one in (peak, known.anonymous_peak_bytes if known else None) if one is not None]
        self._at[phase] = MemoryAt(
            phase=phase,
            resident_bytes=seen.rss_bytes,
            anonymous_bytes=seen.anonymous_bytes,
            shared_bytes=seen.shared_rss_bytes,
            file_bytes=seen.file_rss_bytes,
            anonymous_peak_bytes=max(peaks, default=None),
        )

    def on(self, memory: Memory) -> Memory:
        """The record's entry, with the phases so far."""
        return memory.model_copy(update={"phases": [self._at[one] for one in ORDER if one in self._at]})
