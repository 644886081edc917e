"""The timed loop over a backend in one's own process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timetrial.core import _core
from timetrial.core.backend import Backend, whole_numbers
from timetrial.core.codes import TASKS, code
from timetrial.core.recorder import WINDOW_CAPACITY, Recorder, stamp_boundaries, stamp_times_ns
from timetrial.errors import InputError


@dataclass(frozen=True)
class Segment:
    """Steps between two commands. stamps: the start, then one per step (or per part)."""

    steps: int
    stamps: NDArray[np.uint64]
    losses: NDArray[np.float64]  # one per step, NaN for the task forward

    def durations_ns(self) -> NDArray[np.int64]:
        """Time before each stamp but the first; they add up to the whole exactly."""
        return np.diff(stamp_times_ns(self.stamps))

    def boundaries(self) -> NDArray[np.uint8]:
        """What each duration ended in."""
        return stamp_boundaries(self.stamps)[1:]


class Loop:
    """Runs steps of a built backend in C++, stamping.

    images f32 (samples, ...), labels i64 (samples), order i64 (batches, N): step k uses row k mod batches of
    the order. Without them the backend's last batch is used again and again. recorder: one of one's own.
    """

    def __init__(
        self,
        backend: Backend,
        images: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        order: ArrayLike | None = None,
        *,
        task: str = "train",
        recorder: Recorder | None = None,
    ) -> None:
        self._session = backend.session
        self._task = code("task", task, TASKS)
        self.recorder = recorder if recorder is not None else Recorder()
        self._stream: _core.Stream | None = None
        if images is not None and labels is not None and order is not None:
            self._stream = _core.Stream(
                self._session,
                np.asarray(images, dtype=np.float32),
                whole_numbers("labels", labels),
                whole_numbers("the order", order),
            )
        elif images is not None or labels is not None or order is not None:
            raise InputError("a loop takes images, labels and order together, or none of them")

    def run(self, max_steps: int = WINDOW_CAPACITY - 1, max_ns: int = 0, *, parts: bool = False) -> Segment:
        """A segment: ends after max_steps, after max_ns (0: no limit), at a full window or at a NaN loss.

        parts: a stamp after each part of a train step, the gathering of the batch included.
        """
        if not 1 <= max_steps < 2**32 or not 0 <= max_ns < 2**63:
            raise InputError(f"max_steps = {max_steps}, max_ns = {max_ns}; expected at least 1 and 0")
        result = self._session.run(self.recorder.native, self._task, parts, self._stream, max_steps, max_ns)
        return Segment(result["steps"], self.recorder.stamps(), self.recorder.losses())

    def rewind(self) -> None:
        """The next step uses the first batch."""
        if self._stream is not None:
            self._stream.rewind()
