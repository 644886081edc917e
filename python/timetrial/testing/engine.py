"""What the fixture needs from the rest of timetrial, behind one seam: tests put another engine there."""

from __future__ import annotations

import contextlib
import fcntl
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from timetrial.errors import InputError, Unavailable

if TYPE_CHECKING:
    from timetrial.analysis.growth import Growth
    from timetrial.experiment.experiment import Experiment
    from timetrial.races import Race, Side
    from timetrial.records.metric import Metric
    from timetrial.records.model import CaseRecord
    from timetrial.results.results import Results
    from timetrial.statistics.verdict import Rule


@dataclass(frozen=True)
class Ran:
    """What launches showed."""

    name: str  # of the side that was launched, or of the first that failed
    outcome: str = "ok"  # the first that was not ok, or ok
    reason: str | None = None
    accuracies: Sequence[float] = ()  # one per seed
    peak_bytes: int | None = None  # resident, while steady; the most of all launches
    growth: Growth | None = None  # of launches that were timed
    folder: str = ""
    again: str = ""  # the command that launches it once more, if there is one


class Engine(Protocol):
    """Each raises InputError for what the user got wrong and Unavailable for what this machine lacks."""

    def once(self, sides: Sequence[Side], metric: Metric, seed: int) -> Ran:
        """One launch of each: it runs and, where there is a proof, computes its network. InputError where no
        race of them could be."""

    def learn(self, side: Side, seed: int, epochs: int, seeds: int) -> Ran:
        """The recipe to its end, once per seed."""

    def occupy(self, side: Side, seed: int, launches: int) -> Ran:
        """Launches that are timed, for their memory."""

    def race(self, sides: Sequence[Side], metric: Metric, rule: Rule, seed: int, budget: float) -> Race:
        """The first is the base. A *worse* is confirmed. `budget`: seconds that it may take, twice as many
        where only the confirmation is missing when they are over."""

    def place(self, folder: str, case: str | None) -> dict[str, Any]:
        """When, where and on what the case of a record was measured: fields of its line in a history. None:
        the only case."""


@dataclass(frozen=True)
class RealEngine:
    """timetrial itself. Everything heavy is imported when something is launched."""

    results: Path
    own: bool = field(default=False)  # the folder is the plug-in's own: git shall not see it
    rootdir: Path | None = None  # of pytest: what lies there can be imported

    def once(self, sides: Sequence[Side], metric: Metric, seed: int) -> Ran:
        """A proof launch of each; of what has no proof, also a speed launch."""
        from timetrial.experiment.runner import check_experiment
        from timetrial.races.side import check_sides, experiment_of

        experiment = experiment_of(sides, {}, seed)
        check_sides([one.case for one in experiment.cases], metric)
        return self._run(check_experiment, experiment)

    def learn(self, side: Side, seed: int, epochs: int, seeds: int) -> Ran:
        """A proof launch, then one learning launch per seed."""
        from timetrial.experiment.runner import check_experiment

        return self._run(check_experiment, _alone(side, seed=seed, epochs=epochs, learning_seeds=seeds))

    def occupy(self, side: Side, seed: int, launches: int) -> Ran:
        """A proof launch, then speed launches."""
        from timetrial.experiment.runner import run_experiment

        own = {} if any(key.partition(".")[0] == "malloc" for key in side.keys) else {"malloc": "default"}
        return self._run(run_experiment, _alone(side, seed=seed, effort="quick", launches=launches, **own))

    def race(self, sides: Sequence[Side], metric: Metric, rule: Rule, seed: int, budget: float) -> Race:
        """A race without progress on the terminal."""
        from timetrial.cautions import Caution, caution_of
        from timetrial.in_process.settings import SettingsWarning
        from timetrial.races import run_race
        from timetrial.races.side import experiment_of

        with self._turn():
            # No test fails because something is better.
            found = run_race(
                experiment_of(sides, {"budget": budget}, seed),
                self.results,
                metric=metric,
                rule=rule,
                confirms=("worse",),
                extends=True,
                quiet=True,
            )
        for text in found.record.experiment.warnings:
            if caution_of(text) is Caution.NOT_CARRIED:
                warnings.warn(text, SettingsWarning, stacklevel=2)
        if len(sides) == 2:
            _all_there(found.cases, found.names)
            _all_found(found)
        return found

    def place(self, folder: str, case: str | None) -> dict[str, Any]:
        """From its record."""
        from timetrial.changes.entry import place_of
        from timetrial.changes.findings import findings_of, record_of
        from timetrial.results.loading import load

        found = load(Path(folder))
        one = next(one for one in findings_of(found) if case in (None, one.case.id))
        return {**place_of(record_of(found), one), "proven": one.proven}

    def _run(self, measure: Callable[..., Results], experiment: Experiment) -> Ran:
        with self._turn():
            results = measure(experiment, self.results, quiet=True)
        # What was put together here has no words that say it again.
        return _ran(results, "" if experiment.again is None else results.experiment.again)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """The workers of pytest-xdist take turns; beside anyone else's measurement nothing is measured."""
        try:
            self.results.mkdir(parents=True, exist_ok=True)
            if self.own:
                (self.results / ".gitignore").write_text("*\n", encoding="utf-8")
            turn = (self.results / ".turn").open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"Records cannot be kept in '{self.results}': {error.strerror}. Choose another folder: "
                "--bench-results=DIR."
            ) from None
        with turn, importable(self.rootdir):
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield


@contextlib.contextmanager
def importable(folder: Path | None) -> Iterator[None]:
    """Contenders import what this process can; while they are started, that is from this folder too: plain
    `pytest` puts folders of tests on the path, and not that of the project."""
    added = str(folder)
    if folder is None or added in sys.path:
        yield
        return
    sys.path.append(added)  # last: it hides nothing that tests import
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(added)


def _alone(side: Side, **keys: Any) -> Experiment:
    """The experiment of one side."""
    from timetrial.experiment.experiment import Experiment

    experiment = Experiment.load(**side.keys, **keys)
    if len(experiment.cases) != 1:
        raise InputError(f"{side.name}: {len(experiment.cases)} cases; a side is one. Give one value each.")
    return experiment


def _all_there(cases: Sequence[CaseRecord], names: Mapping[str, str]) -> None:
    """What this machine lacks is not the side's failure."""
    for case in cases:
        if case.unavailable is not None:
            raise Unavailable(f"{names[case.id]}: {case.unavailable}")


def _all_found(race: Race) -> None:
    """Nor is what its launch found missing: a package that is not installed."""
    for case, name in race.names.items():
        proof = race.proof(case)
        if proof is not None and proof.outcome == "unavailable":
            raise Unavailable(f"{name}: {proof.reason}")


def _ran(results: Results, again: str) -> Ran:
    from timetrial.analysis.growth import growth_of
    from timetrial.results.names import side_names

    names = side_names(results.experiment.cases)
    _all_there(results.experiment.cases, names)
    records = [one.record for one in results.launches]
    failed = next((one for one in records if one.outcome != "ok"), None)
    peaks = [one.memory.held for one in records if one.purpose == "speed" and one.memory.held]
    return Ran(
        name=names[failed.case] if failed else ", ".join(names.values()),
        outcome=failed.outcome if failed else "ok",
        reason=failed.reason if failed else None,
        accuracies=[one.evaluations[-1].accuracy for one in records if one.evaluations],
        peak_bytes=max(peaks, default=None),
        growth=growth_of([one for one in results.rows[0].launches if one.counts]),
        folder=str(results.path),
        again=again,
    )


def real_engine(results: Path, *, own: bool, rootdir: Path | None = None) -> Engine:
    """timetrial itself, with its records under `results`."""
    return RealEngine(results, own, rootdir)
