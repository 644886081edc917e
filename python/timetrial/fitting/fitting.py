"""One search for each case: launches of a few steps, each with another cap on memory."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.caps.caps import BY, LEAST_BYTES, MEMORY, NONE, caps_of
from timetrial.errors import InputError
from timetrial.experiment.describe import limits_of, prepare_files
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.progress import QuietProgress, progress
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.fitting.fitted import Fit, Fits
from timetrial.fitting.search import smallest
from timetrial.records import store
from timetrial.records.files import write_once
from timetrial.records.model import LaunchRecord

if TYPE_CHECKING:
    from timetrial.launch import Measure

PRECISION = 0.02
FINEST = 0.001
MS = 1_000_000


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
    store.check_writable(results)
    folder = results / f"fits-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    shown = telling([one.case.axes for one in ready])
    with engine.lock(), progress(quiet=quiet) as bar:
        bar.total(0)
        found = []
        for one in ready:
            axes = {key: one.case.axes.get(key, "-") for key in shown}
            found.append(_Search(experiment, one, axes, engine, folder, bar, precision, by).run())
    fitted = Fits(folder, precision, found)
    write_once(folder / "fits.json", json.dumps(fitted.to_json(), indent=1).encode())
    return fitted


def _checked(experiment: Experiment, engine: Engine, precision: float, by: str | None) -> list[ReadyCase]:
    """All that can be known before anything starts."""
    if not FINEST <= precision <= 1:
        words = f"expected a fraction from {FINEST} to 1, such as {PRECISION}"
        raise InputError(f"precision is {precision!r}; {words}")
    for one in experiment.cases:
        for name in (MEMORY, BY):
            if name in one.case.settings:
                cure = "" if name == MEMORY else f" Say who keeps it by --by {one.case.settings[name]}."
                raise InputError(f"fits looks for the smallest {MEMORY} itself: leave {name} out.{cure}")
    caps_of({MEMORY: "1GiB", **({BY: by} if by else {})})  # whether anybody here can keep one
    return validate(experiment.cases, engine)


def telling(axes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys in which cases differ, the backend first."""
    keys = dict.fromkeys(["backend", *(key for one in axes for key in one)])
    return [key for key in keys if key == "backend" or len({str(one.get(key)) for one in axes}) > 1]


@dataclass
class _Search:
    """Of one case."""

    experiment: Experiment
    one: ReadyCase
    axes: Mapping[str, Any]
    engine: Engine
    folder: Path
    bar: QuietProgress
    precision: float
    by: str | None
    seen: dict[int, LaunchRecord] = field(default_factory=dict)  # by size, the last one of each
    launches: int = 0

    def run(self) -> Fit:
        """Without a cap first: whoever does not run then has no smallest one."""
        case = self.one.case
        if self.one.unavailable is not None:
            return Fit(case.id, self.axes, "unavailable", self.one.unavailable)
        free = self._launch(None)
        fit = Fit(case.id, self.axes, free.outcome, free.reason, held_bytes=free.memory.held)
        if free.outcome != "ok":
            return replace(fit, launches=self.launches)
        most = max(LEAST_BYTES, self.engine.free_bytes())
        guess = free.memory.held or LEAST_BYTES
        found = smallest(self._is_enough, guess, LEAST_BYTES, most, self.precision)
        fit = replace(fit, kept_by=self._kept_by(), launches=self.launches)
        if found is None:
            last = list(self.seen.values())[-1]
            words = f"it runs without a cap, and with none up to what is free: {last.outcome}: {last.reason}"
            return replace(fit, outcome=last.outcome, reason=words)
        fit = replace(fit, smallest_bytes=found.enough, short_bytes=found.short)
        if found.short is None:
            return fit
        below = self.seen[found.short]
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
        from timetrial.launch import LaunchPlan

        case = self.one.case
        cap = {MEMORY: NONE} if size is None else {MEMORY: str(size), **({BY: self.by} if self.by else {})}
        words = " ".join(str(value) for value in self.axes.values())
        self.bar.more(1)
        self.bar.next(f"{words} in {'all memory' if size is None else f'{size / 2**20:.1f} MB'}")
        self.launches += 1
        plan = LaunchPlan(
            case=replace(case, settings={**case.settings, **cap}),
            prepared=prepare_files(self.engine, self.one, self.experiment.spec, self.experiment.spec.seed),
            purpose="speed",
            folder=self.folder / case.id / f"{self.launches - 1:03d}",
            seed=self.experiment.spec.seed,
            measure=few_steps(self.experiment),
            environment=self.experiment.spec.environment,
            contender=self.one.contender,
        )
        record = self.engine.launch(plan)
        self.bar.done(record if size is None else None)  # that some sizes are too small is no failure
        return record


def _has_run(record: LaunchRecord) -> bool:
    """All steps that were wanted: what is looked at behind them, to judge them, may need more."""
    has_ended = record.stop_reason is not None and record.outcome in ("capped", "oom", "crash")
    return record.outcome == "ok" or has_ended


def few_steps(experiment: Experiment) -> Measure:
    """The first step, and some more: what grows from step to step shows."""
    from timetrial.launch import Measure

    return Measure(
        min_ns=50 * MS,
        budget_ns=100 * MS,
        max_steps=50,
        detailed_steps=0,
        passes=False,
        limits=limits_of(experiment.spec),
    )
