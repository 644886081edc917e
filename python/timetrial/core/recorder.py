"""The recorder: stamps in a file that survive the death of their writer (see recorder.h of the C ABI)."""

from __future__ import annotations

import os
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from timetrial.core import _core
from timetrial.errors import InputError

SEGMENT = 0  # boundary: start of a segment
STEP = 1  # boundary: end of a step
DATA = 2  # boundary: batch gathered
FORWARD_END = 3
LOSS_END = 4
BACKWARD_END = 5
RESET = 6  # boundary: end of a reset to the initial state, which belongs to no step
FIRST_USER_BOUNDARY = 64  # 64 to 255 are free
MAX_SEGMENT_STEPS = 65_535  # a window holds 65,536 stamps, and a segment begins with one of its own
_HEADER_BYTES = 4096
_NO_LOSS_BITS = np.uint64(0x7FF8_0000_0000_6E6F)  # kNoLossBits of the timed loop
WINDOW_CAPACITY: int = _core.WINDOW_CAPACITY  # the most stamps a window can hold


def stamp_times_ns(stamps: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The times of stamps on the clock of `clock.now_ns()`."""
    times: NDArray[np.int64] = (stamps >> np.uint64(8)).astype(np.int64)
    return times


def stamp_boundaries(stamps: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The boundary numbers of stamps."""
    boundaries: NDArray[np.uint8] = (stamps & np.uint64(0xFF)).astype(np.uint8)
    return boundaries


def create_recorder_file(windows: int = 2, capacity: int = WINDOW_CAPACITY) -> int:
    """A memfd with its header written and all its room reserved; the caller closes it."""
    if windows < 1 or not 1 <= capacity <= WINDOW_CAPACITY:
        raise InputError(
            f"windows = {windows}, capacity = {capacity}; expected at least 1 window of "
            f"1 to {WINDOW_CAPACITY} stamps"
        )
    return _core.create_recorder_file(windows, capacity)


def read_window(
    fd: int, window: int = 0, capacity: int | None = None
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """(stamps, losses) that a window holds now: complete while the writer writes, and after it was killed.

    The losses are one per step (stamp STEP), NaN where a step gave none. capacity: what the file must have
    been made with, if given.
    """
    if window < 0:
        raise InputError(f"window = {window}; expected a whole number from 0")
    stamps, losses = _core.read_window(fd, window)
    if capacity is not None and capacity < len(stamps):
        raise InputError(f"the window holds {len(stamps)} stamps, more than capacity = {capacity}")
    return stamps, losses


def gave_no_loss(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which steps gave no loss at all: their NaN is the loop's own, and no other NaN is."""
    missing: NDArray[np.bool_] = np.ascontiguousarray(losses).view(np.uint64) == _NO_LOSS_BITS
    return missing


class Recorder:
    """Stamps of one's own code. Boundaries from 64 on are free; a duration is the difference of two stamps.

        with Recorder() as recorder:
            for batch in batches:
                train(batch)
                recorder.stamp()
        recorder.durations_ns()

    path: a file that must not exist yet; None keeps the stamps in memory without a name.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, capacity: int = WINDOW_CAPACITY) -> None:
        self._fd = -1
        if not 1 <= capacity <= WINDOW_CAPACITY:
            raise InputError(f"capacity = {capacity}; expected 1 to {WINDOW_CAPACITY} stamps")
        if path is None:
            self._fd = create_recorder_file(1, capacity)
        else:
            try:
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise InputError(
                    f"{os.fspath(path)}: {error.strerror}; a recorder starts a new file"
                ) from error
        self._native = _core.Recorder(self._fd, capacity)
        self.capacity = capacity
        self.stamp = self._native.stamp  # bound once: nothing of ours stands between the caller and C++
        self.stamp_at = self._native.stamp_at

    @property
    def native(self) -> _core.Recorder:
        """The compiled object, for `Loop`."""
        return self._native

    def begin(self) -> Recorder:
        """Opens the window (what it held is cleared) and stamps its start with SEGMENT."""
        self._native.begin(0, self.capacity)
        self._native.stamp(SEGMENT)
        return self

    def end(self) -> None:
        """Closes the window. The stamps stay readable."""
        self._native.end()

    def __enter__(self) -> Recorder:
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def stamps(self) -> NDArray[np.uint64]:
        """All stamps so far, the start first."""
        return self._window()[0]

    def losses(self) -> NDArray[np.float64]:
        """One per step that a `Loop` has run."""
        return self._window()[1]

    def durations_ns(self) -> NDArray[np.int64]:
        """Time before each stamp but the first: they add up to last minus first exactly."""
        return np.diff(stamp_times_ns(self.stamps()))

    def boundaries(self) -> NDArray[np.uint8]:
        """What each duration ended in."""
        return stamp_boundaries(self.stamps())[1:]

    def _window(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        if os.fstat(self._fd).st_size <= _HEADER_BYTES:  # a file of one's own before the first begin()
            return np.empty(0, np.uint64), np.empty(0, np.float64)
        return read_window(self._fd)

    def close(self) -> None:
        """Gives the file up. The stamps of a recorder without a path are gone then."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()
