"""A contender's windows of the recorder, believed as far as they agree with what was asked and answered."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from timetrial.core.recorder import SEGMENT, STEP, WINDOW_CAPACITY, read_window, stamp_boundaries
from timetrial.errors import InputError
from timetrial.launch.decisions import Order
from timetrial.processes.events import SegmentDone, broken

# What a contender may map of a window: its stamps and its losses, in whole pages.
MOST_MAPPED_BYTES = 16 * WINDOW_CAPACITY + 4 * mmap.PAGESIZE


def read_recorder(fd: int, window: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Stamps and losses. LaunchError: the contender has damaged the recorder's file."""
    try:
        return read_window(fd, window)
    except (OSError, InputError) as error:
        raise broken(f"the recorder's file is damaged: {error}") from None


def check_segment(said: SegmentDone, order: Order, window: int, stamps: NDArray[np.uint64]) -> None:
    """LaunchError unless the answer, the order and the stamps in the window go together."""
    if said.window != window or said.window_bytes > MOST_MAPPED_BYTES:
        raise broken(f"it was given the window {window} and says {said.window}, {said.window_bytes} bytes")
    if not 0 < said.stamps <= len(stamps):
        raise broken(f"it says {said.stamps} stamps, the recorder has {len(stamps)}")
    boundaries = stamp_boundaries(stamps[: said.stamps])
    steps = int(np.count_nonzero(boundaries == STEP))
    if boundaries[0] != SEGMENT:
        raise broken(f"its segment begins with a stamp of the boundary {boundaries[0]}, expected {SEGMENT}")
    if steps != said.steps or steps > order.steps:
        raise broken(f"it was asked for {order.steps} steps at most, says {said.steps}, and stamped {steps}")
