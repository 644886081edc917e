"""The clock of hang detection: only time in which a contender could have worked counts."""

from __future__ import annotations

import time

from timetrial.core.observer import Observer


class RunningTime:
    """Seconds that a contender could have used since the last call: not stopped, and not waiting for a
    processor that others had. A contender that sleeps in a deadlock is running by this measure."""

    def __init__(self, observer: Observer):
        self._observer = observer
        self._then_s = time.monotonic()
        self._waited: dict[int, int] = {}

    def restart(self) -> None:
        """From here, without a look at the contender: that costs a millisecond on a busy machine."""
        self._then_s = time.monotonic()
        self._waited = {}

    def __call__(self) -> float:
        """Seconds since the last call, or since it was made."""
        now_s = time.monotonic()
        passed_s, self._then_s = now_s - self._then_s, now_s
        try:
            seen = self._observer.read()
        except ProcessLookupError:
            return passed_s
        waited = {thread.tid: thread.wait_ns for thread in seen.threads}
        waits = [ns - self._waited.get(tid, ns) for tid, ns in waited.items()]
        self._waited = waited
        if seen.stopped:
            return 0.0
        return max(0.0, passed_s - max(waits, default=0) / 1e9)
