"""Launches of a few steps that look for a size: one search for each case, records in one folder."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from timetrial.cases.case import Case
from timetrial.errors import InputError
from timetrial.experiment.describe import limits_of, prepare_files
from timetrial.experiment.engine import Engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase
from timetrial.progress import QuietProgress, progress
from timetrial.records import sessions, store
from timetrial.records.files import near
from timetrial.records.model import LaunchRecord

if TYPE_CHECKING:
    from timetrial.launch import Measure

MS = 1_000_000

Found = TypeVar("Found")
Whole = TypeVar("Whole")


@dataclass
class Probes:
    """Of one case."""

    experiment: Experiment
    one: ReadyCase
    axes: Mapping[str, Any]  # what tells the cases apart
    engine: Engine
    folder: Path
    bar: QuietProgress
    launches: int = 0  # until now

    def launch(self, case: Case, words: str, ready: ReadyCase | None = None) -> LaunchRecord:
        """The case with another size; `words` say which. `ready`: with that size, where it has other data."""
        from timetrial.launch import LaunchPlan

        sessions.check_there(self.folder)
        ready, spec = ready or self.one, self.experiment.spec
        self.bar.more(1)
        self.bar.next(f"{' '.join(map(str, self.axes.values()))} {words}")
        plan = LaunchPlan(
            case=case,
            prepared=prepare_files(self.engine, ready, spec, spec.seed),
            purpose="speed",
            folder=self.folder / self.one.case.id / f"{self.launches:03d}",
            seed=spec.seed,
            measure=_few_steps(self.experiment),
            environment=spec.environment,
            contender=ready.contender,
        )
        self.launches += 1
        record = self.engine.launch(plan)
        self.bar.done(None)  # that some sizes do not do is no failure
        return record


def check_precision(precision: float, finest: float, usual: float) -> None:
    """InputError: no fraction that a search can reach."""
    if not finest <= precision <= 1:
        words = f"expected a fraction from {finest} to 1, such as {usual}"
        raise InputError(f"precision is {precision!r}; {words}")


def probe_each(
    name: str,
    experiment: Experiment,
    ready: Sequence[ReadyCase],
    engine: Engine,
    results: Path,
    search: Callable[[Probes], Found],
    keep: Callable[[Path, list[Found]], Whole],
    *,
    quiet: bool,
) -> Whole:
    """What `search` finds for each case, as `keep` writes it into the folder NAME-... of `results`, which has
    the records. Interrupted, it keeps what was found for the cases that were done."""
    store.check_writable(results)
    folder = results / f"{name}-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    shown = _telling([one.case.axes for one in ready])
    with engine.lock(), sessions.session(folder), progress(quiet=quiet) as bar:
        bar.total(0)
        found = []
        try:
            for one in ready:
                axes = {key: one.case.axes.get(key, "-") for key in shown}
                found.append(search(Probes(experiment, one, axes, engine, folder, bar)))
        except KeyboardInterrupt:
            if found:
                keep(folder, found)
            words = f"{len(found)} of {len(ready)} searches had ended; '{near(folder)}' has what they found"
            raise KeyboardInterrupt(f"interrupted. {words}, and the records of all launches.") from None
    return keep(folder, found)


def _telling(axes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys in which cases differ, the backend first."""
    keys = dict.fromkeys(["backend", *(key for one in axes for key in one)])
    return [key for key in keys if key == "backend" or len({str(one.get(key)) for one in axes}) > 1]


def _few_steps(experiment: Experiment) -> Measure:
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
