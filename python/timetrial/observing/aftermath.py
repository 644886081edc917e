"""What a contender still does when its last step has returned: work that nobody waited for, and helpers that
go on by themselves."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from statistics import median

from timetrial.core.observer import Observer
from timetrial.processes.outcome import LaunchError

POLL_S = 0.001
QUIET_LOOKS = 2  # in a row, at which nothing runs
MOST_S = 5.0  # that work behind the last step may take
SPIN_NS = 2_000_000  # less than this may be threads that spin before they sleep
LEAST_SHARE = 0.05  # of a step, that is worth looking for
LISTEN_S = 0.12  # helpers that read or compute wake up within this
FEWEST_WAKES = 2  # of a thread, that are more than its falling asleep
SINGLES = 5
OF_A_STEP = 0.8  # a single step that returns in less than this share of the usual time has left work behind
SLACK_NS = 50_000_000  # that a busy machine may hold threads up
GROWTH = 2.0  # of what follows many steps over what follows one, by which it is work and no spinning


class Aftermath:
    """Of one contender, while it waits for its next command."""

    def __init__(self, observer: Observer):
        self._observer = observer
        self._pid = observer.pid

    def until_quiet(self, last_ns: int) -> int:
        """Waits until no thread of it runs or is ready to. Nanoseconds from its last stamp, `last_ns`, to the
        last moment at which one did; its first does not count, which takes the steps and answers us. 0: none
        did. LaunchError: it does not become quiet."""
        # It has answered by now. Work of Python's threads holds the answer up.
        busy_until = now if (now := time.monotonic_ns()) - last_ns > SPIN_NS else 0
        deadline, quiet = time.monotonic() + MOST_S, 0
        while quiet < QUIET_LOOKS:
            running = self._running()
            if running - {self._pid}:
                busy_until = time.monotonic_ns()
            quiet = 0 if running else quiet + 1
            if time.monotonic() > deadline:
                raise LaunchError(
                    "wrong",
                    "its steps return before their work is done, or a thread of it never rests: "
                    f"{MOST_S:g} s after the last step one still ran. Wait for the work in the step, or "
                    "return the loss",
                )
            time.sleep(POLL_S)
        return max(0, busy_until - last_ns)

    def _running(self) -> set[int]:
        """Threads, by their state: CPU times grow only with the kernel's tick."""
        found = set()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{self._pid}/task"):
                with (
                    contextlib.suppress(OSError),
                    open(f"/proc/{self._pid}/task/{task}/stat", "rb") as file,
                ):
                    if file.read().rpartition(b")")[2].split()[0] in (b"R", b"D"):
                        found.add(int(task))
        return found

    def work_behind_ns(self, last_ns: int, step_ns: float, single: Callable[[], tuple[int, int]]) -> int:
        """For how long work went on behind the last step, where steps return before theirs is done; 0: they
        do not. `single` runs one step: what it took [ns], and its last stamp. It is asked only where
        something went on behind the last step, which must go on behind single steps too."""
        behind_ns = self.until_quiet(last_ns)
        if behind_ns < max(SPIN_NS, LEAST_SHARE * step_ns):
            return 0
        taken, behind = [], []
        for _ in range(SINGLES):
            taken_ns, ended_ns = single()
            taken.append(taken_ns)
            behind.append(self.until_quiet(ended_ns))
        if median(behind) < SPIN_NS / 2:
            return 0
        leaves = median(taken) < OF_A_STEP * step_ns or behind_ns > GROWTH * max(behind) + SLACK_NS
        return behind_ns if leaves else 0

    def helpers(self) -> str | None:
        """What goes on although no step does, in words: '4 processes', 'a thread (loader)'. None: nothing. It
        takes LISTEN_S where there is anything but the thread that takes the steps."""
        before = self._observer.read().threads
        if len(before) < 2:
            return None
        time.sleep(LISTEN_S)
        known = {one.tid: one.voluntary_switches for one in before}
        wakes = {
            one: one.voluntary_switches - known[one.tid]
            for one in self._observer.read().threads
            if one.tid in known and one.tid != self._pid
        }
        processes = {one.pid for one, count in wakes.items() if count and one.pid != self._pid}
        threads = [one.name for one, count in wakes.items() if count >= FEWEST_WAKES and one.pid == self._pid]
        if processes:
            return f"{len(processes)} process{'es' if len(processes) > 1 else ''} that it started"
        if threads:
            return f"a thread of it ({threads[0]})" if len(threads) == 1 else f"{len(threads)} threads of it"
        return None
