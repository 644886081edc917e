"""Who else had the processors during one turn: by the kernel's counts, never by step times."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from timetrial.control.habits import is_helper
from timetrial.core.observer import Observation, Observer
from timetrial.observing.disturbances import TURN_WAIT_LIMIT, causes_by
from timetrial.observing.witnesses import Look, Machine, Share, witnesses_of
from timetrial.records.model import Turn


@dataclass(frozen=True)
class _Glance:
    seen: Observation
    machine: Look


class TurnWatch:
    """Looks at one contender and its processors where a turn begins and where it ends; in between all others
    of its heat stand still."""

    def __init__(self, observer: Observer, machine: Machine, helpers: Sequence[str]):
        self._observer = observer
        self._machine = machine
        self._helpers = tuple(helpers)
        self._cores: frozenset[int] = frozenset()
        self._begin: _Glance | None = None
        self.round: int | None = None  # of the turn that has begun, if any

    def begin(self, round_number: int, cpus: Collection[int]) -> None:
        """Before the contender goes on. `cpus`: those that it may use."""
        self.round = round_number
        self._cores = self._machine.cores(cpus)
        self._begin = self._look()

    def end(self) -> Turn:
        """When it stands still again."""
        assert self._begin is not None
        assert self.round is not None
        begin, end = self._begin, self._look()
        before = {thread.tid: thread.wait_ns for thread in begin.seen.threads}
        waits_ns = [
            thread.wait_ns - before.get(thread.tid, 0)
            for thread in end.seen.threads
            if not is_helper(thread.name, self._helpers)
        ]
        cpu_ns = end.seen.cpu_ns - begin.seen.cpu_ns
        wall_ns = end.machine.time_ns - begin.machine.time_ns
        share = Share(wall_ns, cpu_ns, max(waits_ns, default=0), cpu_ns + sum(waits_ns))
        found = witnesses_of(begin.machine, end.machine, share, self._cores)
        return Turn(
            round=self.round,
            disturbed=bool(causes_by(found, wait_limit=TURN_WAIT_LIMIT)),
            others_cpus=found.get("others_cpus"),
            steal_ratio=found.get("steal_ratio"),
            wait_ratio=found.get("wait_ratio"),
        )

    def _look(self) -> _Glance:
        seen = self._observer.read()
        return _Glance(seen, self._machine.glance(seen.cpu_ns + time.process_time_ns()))
