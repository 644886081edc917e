"""The clock of hang detection: only time in which a contender could have worked counts."""

from __future__ import annotations

import time

from timetrial.core.observer import Observer


class RunningTime:
    """Seconds that a contender could have used since the last call: not while it waited for a processor that
    others had, nor while we could not look. A contender that sleeps in a deadlock is running by this measure,
    and so is one that stopped itself: nobody waits for a contender that *we* have stopped."""

    def __init__(self, observer: Observer, longest_s: float):
        """`longest_s`: between two calls, unless this process itself stood still."""
        self.stopped = False  # by whomever
        self._observer = observer
        self._longest_s = longest_s
        self._then_s = time.monotonic()
        self._waited: dict[int, int] = {}

    def restart(self) -> None:
        """From here, without a look at the contender: that costs a millisecond on a busy machine."""
        self._then_s = time.monotonic()
        self._waited = {}

    def __call__(self) -> float:
        """Seconds since the last call, or since it was made."""
        now_s = time.monotonic()
        passed_s, self._then_s = min(now_s - self._then_s, self._longest_s), now_s
        try:
            seen = self._observer.read()
        except ProcessLookupError:
            return passed_s
        waited = {thread.tid: thread.wait_ns for thread in seen.threads}
        waits = [ns - self._waited.get(tid, ns) for tid, ns in waited.items()]
        self._waited = waited
        self.stopped = seen.stopped
        return max(0.0, passed_s - max(waits, default=0) / 1e9)
