"""The timed loop over a backend in one's own process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timetrial.core import _core
from timetrial.core.backend import Backend, Batch, as_inputs, whole_numbers
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

    data: an array for each input of the network, sample by sample; order i64 (batches, N): step k uses row
    k mod batches of the order. Without them the backend's last batch is used again and again. recorder: one
    of one's own.
    """

    def __init__(
        self,
        backend: Backend,
        data: Batch | None = None,
        order: ArrayLike | None = None,
        *,
        task: str = "train",
        recorder: Recorder | None = None,
    ) -> None:
        self._session = backend.session
        self._task = code("task", task, TASKS)
        self.recorder = recorder if recorder is not None else Recorder()
        self._stream: _core.Stream | None = None
        if (data is None) != (order is None):
            raise InputError("a loop takes data and order together, or none of them")
        if data is not None and order is not None:
            arrays = as_inputs(backend.network, data)
            self._stream = _core.Stream(self._session, arrays, whole_numbers("the order", order))

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
