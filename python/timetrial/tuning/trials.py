"""What heats found of candidates: how long each takes beside the base, and who is out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from timetrial.errors import InputError
from timetrial.results.results import Results
from timetrial.tuning.search import Search
from timetrial.tuning.space import Candidate, Space
from timetrial.tuning.tuned import Trial


class Trials:
    """Every look at every candidate; `found` by the case's id, the base first. `memory`: the most that one
    may hold, in bytes; None: all that there is."""

    def __init__(self, space: Space, search: Search, memory: int | None = None):
        self.space, self.search = space, search
        self.found: dict[str, Trial] = {}
        self._memory = memory

    def note(self, results: Results) -> None:
        """What a heat found. InputError: nothing can be compared with this base."""
        rows = {row.case.id: row for row in results.rows}
        base = rows.get(self.space.base.case.id)
        if base is None or base.outcome is None:
            return  # it was ended before anything was found
        base_ns = self._ns(self.space.base, base)
        if not self.found:
            self._check_base(base, base_ns)
        for candidate in self._of(rows):
            row = rows[candidate.case.id]
            if row.outcome is not None:
                self._note(candidate, row, base, base_ns)

    def _note(self, candidate: Candidate, row: Any, base: Any, base_ns: float | None) -> None:
        """One look at a candidate. Who failed in one is out, unless it was the base beside it that failed."""
        name, before = candidate.case.id, self.found.get(candidate.case.id)
        if before is not None and (base_ns is None or not before.looks or row is base):
            return
        looks: tuple[float, ...] = ()
        reason, own_ns = row.reason, self._ns(candidate, row)
        if base_ns is None:
            reason = reason or f"the base failed beside it: {base.outcome}"
        elif own_ns is not None and not (reason := self._too_large(row)):
            looks = (*(before.looks if before else ()), math.log(own_ns / base_ns))
        trial = Trial(name, candidate.point, looks, row.outcome, reason)
        self.found[name] = trial
        if before is None:
            self.search.tell(candidate, trial.log_ratio if looks else None)

    def _check_base(self, base: Any, base_ns: float | None) -> None:
        words = self._too_large(base) if base_ns is not None else f"{base.outcome}: {base.reason}"
        if base_ns is None or words:
            raise InputError(f"the base, the first of the cases, cannot be measured: {words}")

    def _ns(self, candidate: Candidate, row: Any) -> float | None:
        """Of a step, or of a sample where batch sizes differ; None: it has no time."""
        if row.outcome != "ok" or row.step_time_ns is None:
            return None
        estimate: float = row.step_time_ns.estimate
        return estimate / self.space.samples(candidate)

    def _too_large(self, row: Any) -> str | None:
        """Why it is out, in words."""
        if self._memory is None:
            return None
        if row.peak_memory_bytes is None:
            return "the kernel did not say how much memory it held"
        if row.peak_memory_bytes <= self._memory:
            return None
        held, most = (f"{size / 2**20:,.0f} MB" for size in (row.peak_memory_bytes, self._memory))
        return f"it held {held}, and {most} are the most allowed (memory)"

    def _of(self, rows: dict[str, Any]) -> Iterator[Candidate]:
        """The candidates of a heat, the base first."""
        return (one for one in self.space.candidates if one.case.id in rows)
