"""Runs an experiment, or what is missing of one: all is validated first, then come the phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from timetrial.cases.keys import is_callable_word
from timetrial.errors import InputError, MeasurementError
from timetrial.experiment import phases
from timetrial.experiment.allocator import with_settled_allocator
from timetrial.experiment.describe import experiment_record
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.heats import largest_heat
from timetrial.experiment.open_files import ensure_open_files
from timetrial.experiment.resume import (
    Recorded,
    as_begun,
    begin_again,
    check_resumable,
    experiment_of,
    look_at_unfinished,
    recorded_in,
    session,
)
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.progress import progress, say
from timetrial.records import sessions, store
from timetrial.records.files import near
from timetrial.records.model import ExperimentRecord
from timetrial.results.profile import Profile
from timetrial.results.results import Results


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: every contender is gone; `results` holds what had finished. A notebook shows the words."""

    def __init__(self, results: Results):
        folder = str(near(results.path))
        rest = "" if results.experiment.profiles else f"; tt.resume({folder!r}) does the rest"
        super().__init__(f"interrupted. tt.load({folder!r}) shows what there is{rest}.")
        self.results = results


class RunStoppedError(MeasurementError):
    """The instrument could not go on: the disk is full, say. `results` holds what had finished."""

    def __init__(self, words: str, results: Results):
        super().__init__(words)
        self.results = results


def run_experiment(
    experiment: Experiment,
    results: Path,
    *,
    prove_again: bool = False,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Results:
    """Measures and returns the results. Raises InputError before anything starts, Interrupted on Ctrl-C,
    RunStoppedError if records can no longer be kept. Beside a step of the user's own all keep their memory
    (allocator.py). `prove_again`: no proof of an earlier run counts."""
    if any(is_callable_word(one.case.backend) for one in experiment.cases):
        experiment = with_settled_allocator(experiment)
    return _session(
        experiment, results, phases.measure, {}, prove_again=prove_again, quiet=quiet, engine=engine
    )


def run_mixed(
    experiment: Experiment,
    results: Path,
    earlier: Sequence[Path],
    *,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Results:
    """As run_experiment(), with all cases in one heat, whatever their threads and batch sizes, so that all
    are compared side by side. Of a case that is proven in one of the folders `earlier`, that proof counts;
    the machine's peak is not measured. Raises as run_experiment() does."""
    return _session(
        experiment,
        results,
        phases.measure,
        {},
        quiet=quiet,
        engine=engine,
        peaks=False,
        mixed=True,
        earlier=earlier,
    )


def check_experiment(
    experiment: Experiment,
    results: Path,
    *,
    prove_again: bool = False,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Results:
    """What needs no clock: each case is proven and, where the experiment trains, learns. What has no proof
    takes its steps in one speed launch, which shows that it runs. `prove_again`, and raises: as
    run_experiment()."""
    spec = experiment.spec
    untimed = spec.model_copy(update={"measure": spec.measure.model_copy(update={"launches": 0})})
    experiment = replace(experiment, spec=untimed)
    return _session(
        experiment,
        results,
        phases.check,
        {},
        prove_again=prove_again,
        quiet=quiet,
        engine=engine,
        peaks=False,
    )


def profile_experiment(
    experiment: Experiment,
    results: Path,
    *,
    prove_again: bool = False,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Profile:
    """Proves each case and profiles it in one launch of its own. `prove_again`, and raises: as
    run_experiment()."""
    for one in experiment.cases:
        if one.case.task != "train":
            raise InputError(f"task is '{one.case.task}': only a train step can be profiled. Leave task out.")
    # What `run` makes and this does not.
    record = {
        "launches": 0,
        "half_width": None,
        "learning_seeds": 0,
        "profiles": 1,
        "again": experiment.again_with("profile"),
    }
    return _session(
        experiment,
        results,
        phases.profile,
        record,
        prove_again=prove_again,
        quiet=quiet,
        engine=engine,
        bandwidths=True,
    ).profile


def resume_experiment(folder: Path, *, quiet: bool = False, engine: Engine | None = None) -> Results:
    """Launches what has no record yet in the folder of a run that was ended, and returns the results. Raises
    as run_experiment() does; InputError also where nothing is missing, or this is another machine."""
    engine = engine or real_engine()
    written = store.read_experiment(folder)
    if written.profiles:
        raise InputError(f"'{folder}' is a profile, which is made anew: {written.again}")
    check_resumable(folder, "run")
    experiment = experiment_of(written)
    ready = as_begun(written, _checked(experiment, engine))
    with engine.lock(), session(folder):
        begin_again(folder, written, engine.machine())
        return _measured(
            experiment,
            written,
            folder,
            phases.measure,
            ready,
            recorded_in(folder),
            engine=engine,
            quiet=quiet,
        )


def _session(
    experiment: Experiment,
    results: Path,
    phase: Callable[[phases.Run, Sequence[ReadyCase]], None],
    record: Mapping[str, Any],
    *,
    quiet: bool,
    engine: Engine | None,
    prove_again: bool = False,
    peaks: bool = True,
    bandwidths: bool = False,
    mixed: bool = False,
    earlier: Sequence[Path] = (),
) -> Results:
    """Validates, takes the lock, writes experiment.json (`record` replaces fields of it), measures.

    `peaks`, `bandwidths`: whether the machine's own are measured beforehand. `mixed`, `earlier`: run_mixed().
    """
    engine = engine or real_engine()
    engine = engine.proving_again() if prove_again else engine
    ready = _checked(experiment, engine, mixed=mixed)
    store.check_writable(results)
    with engine.lock():
        same = look_at_unfinished(results, experiment, "run", store.read_experiment)
        say(same, quiet=quiet)
        written = experiment_record(experiment, ready, engine, peaks=peaks, bandwidths=bandwidths)
        folder = store.new_folder(results)
        warnings = [*written.warnings, *same]
        written = written.model_copy(update={**record, "id": folder.name, "warnings": warnings})
        with session(folder):
            store.write_experiment(folder, written)
            store.copy_proofs(earlier, folder, [one.case.content_id for one in ready])
            return _measured(
                experiment,
                written,
                folder,
                phase,
                ready,
                recorded_in(folder),
                engine=engine,
                quiet=quiet,
                mixed=mixed,
            )


def _checked(experiment: Experiment, engine: Engine, *, mixed: bool = False) -> list[ReadyCase]:
    """All that can be known before anything starts."""
    ensure_open_files(1)  # plug-ins are asked what they are
    ready = validate(experiment.cases, engine)
    if not experiment.spec.measure.isolated:
        ensure_open_files(largest_heat(ready, mixed=mixed))
    return ready


def _measured(
    experiment: Experiment,
    written: ExperimentRecord,
    folder: Path,
    phase: Callable[[phases.Run, Sequence[ReadyCase]], None],
    ready: Sequence[ReadyCase],
    recorded: Recorded,
    *,
    engine: Engine,
    quiet: bool,
    mixed: bool = False,
) -> Results:
    live = [one for one in ready if one.unavailable is None]
    sizes = phases.measure_sizes(experiment)
    try:
        with progress(quiet=quiet) as bar:
            phase(phases.Run(experiment, written, engine, folder, sizes, bar, recorded, mixed), live)
    except KeyboardInterrupt:
        raise Interrupted(_results(folder, written)) from None
    except MeasurementError as error:
        raise RunStoppedError(str(error), _results(folder, written)) from error
    return _results(folder, written)


def _results(folder: Path, written: ExperimentRecord) -> Results:
    """Whoever removed experiment.json meanwhile would take all launches with it."""
    sessions.check_there(folder)
    if not (folder / store.EXPERIMENT_FILE).exists():
        store.write_experiment(folder, written)
    return Results(folder)
