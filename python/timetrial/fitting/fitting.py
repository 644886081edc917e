"""One search for each case: launches of a few steps, each with another cap on memory."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from timetrial.caps.caps import BY, LEAST_BYTES, MEMORY, NONE, caps_of
from timetrial.errors import InputError
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.fitting.fitted import Fit, Fits
from timetrial.fitting.probes import Probes, check_precision, probe_each
from timetrial.records.files import write_once
from timetrial.records.model import LaunchRecord
from timetrial.statistics.bisection import boundary

PRECISION = 0.02
FINEST = 0.001
PAGE = 4096  # bytes: caps are whole pages
STRIDE = 0.5  # what a contender holds says little of what it asks for on the way


def fits(
    source: str | None = None,
    /,
    *,
    precision: float = PRECISION,
    by: str | None = None,
    results: str | Path = "results",
    quiet: bool = False,
    **keywords: Any,
) -> Fits:
    """The smallest cap on memory in which a training step still runs, for each case, by bisection:

        tt.fits(network="lenet5", backend=["eigen", "pytorch"], batch_size=[16, 256])

    Each size is a launch of its own, of a few steps; what was found is confirmed by another. `precision`: how
    far it may be above a size that is too small. `by`: who keeps the cap (`memory.cap_by`). InputError: a
    case has a cap already, or cannot be.
    """
    experiment = Experiment.load(source, **keywords)
    return fit_experiment(experiment, Path(results), precision=precision, by=by, quiet=quiet)


def fit_experiment(
    experiment: Experiment,
    results: Path,
    *,
    precision: float = PRECISION,
    by: str | None = None,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Fits:
    """The same, of an experiment; its records are in a folder fits-... of `results`."""
    engine = engine or real_engine()
    ready = _checked(experiment, engine, precision, by)

    def search(probes: Probes) -> Fit:
        return _Search(probes, precision, by).run()

    def keep(folder: Path, found: list[Fit]) -> Fits:
        fitted = Fits(folder, precision, found)
        write_once(folder / "fits.json", json.dumps(fitted.to_json(), indent=1).encode())
        return fitted

    return probe_each("fits", experiment, ready, engine, results, search, keep, quiet=quiet)


def _checked(experiment: Experiment, engine: Engine, precision: float, by: str | None) -> list[ReadyCase]:
    """All that can be known before anything starts."""
    check_precision(precision, FINEST, PRECISION)
    for one in experiment.cases:
        for name in (MEMORY, BY):
            if name in one.case.settings:
                cure = "" if name == MEMORY else f" Say who keeps it by --by {one.case.settings[name]}."
                raise InputError(f"fits looks for the smallest {MEMORY} itself: leave {name} out.{cure}")
    caps_of({MEMORY: "1GiB", **({BY: by} if by else {})})  # whether anybody here can keep one
    return validate(experiment.cases, engine)


@dataclass
class _Search:
    """Of one case."""

    probes: Probes
    precision: float
    by: str | None
    seen: dict[int, LaunchRecord] = field(default_factory=dict)  # by size, the last one of each

    def run(self) -> Fit:
        """Without a cap first: whoever does not run then has no smallest one."""
        one, axes = self.probes.one, self.probes.axes
        if one.unavailable is not None:
            return Fit(one.case.id, axes, "unavailable", one.unavailable)
        free = self._launch(None)
        fit = Fit(one.case.id, axes, free.outcome, free.reason, held_bytes=free.memory.held)
        if free.outcome != "ok":
            return replace(fit, launches=self.probes.launches)
        most = max(LEAST_BYTES, self.probes.engine.free_bytes())
        guess = free.memory.held or LEAST_BYTES
        found = boundary(
            self._is_enough,
            _pages(guess),
            easiest=_pages(most),
            hardest=_pages(LEAST_BYTES),
            precision=self.precision,
            stride=STRIDE,
            grain=PAGE,
        )
        fit = replace(fit, kept_by=self._kept_by(), launches=self.probes.launches)
        if found.does is None:
            last = list(self.seen.values())[-1]
            words = f"it runs without a cap, and with none up to what is free: {last.outcome}: {last.reason}"
            return replace(fit, outcome=last.outcome, reason=words)
        fit = replace(fit, smallest_bytes=found.does, short_bytes=found.fails)
        if found.fails is None:
            return fit
        below = self.seen[found.fails]
        ending = below.ending
        return replace(
            fit,
            below=below.outcome,
            below_reason=below.reason,
            cause=ending.cause if ending else None,
            boundary=ending.boundary if ending else None,
        )

    def _is_enough(self, size: int) -> bool:
        record = self.seen[size] = self._launch(size)
        kept = next((one for one in record.settings if one.name == MEMORY), None)
        if record.outcome == "mismatch" and kept is not None and kept.status == "ignored":
            raise InputError(f"{MEMORY}={size} is not in force here: {kept.how_read}. Another --by may be")
        return _has_run(record)

    def _kept_by(self) -> str | None:
        for record in self.seen.values():
            for one in record.settings:
                if one.name == BY:
                    return one.effective
        return None

    def _launch(self, size: int | None) -> LaunchRecord:
        case = self.probes.one.case
        cap = {MEMORY: NONE} if size is None else {MEMORY: str(size), **({BY: self.by} if self.by else {})}
        words = "in all memory" if size is None else f"in {size / 2**20:.1f} MB"
        return self.probes.launch(replace(case, settings={**case.settings, **cap}), words)


def _pages(size: int) -> int:
    """So much, in whole ones."""
    return math.ceil(size / PAGE) * PAGE


def _has_run(record: LaunchRecord) -> bool:
    """All steps that were wanted: what is looked at behind them, to judge them, may need more."""
    has_ended = record.stop_reason is not None and record.outcome in ("capped", "oom", "crash")
    return record.outcome == "ok" or has_ended
