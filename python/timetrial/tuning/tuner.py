"""Tuning: heats measure what the search asks for, then a race judges the best against the base."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timetrial.cases.budget import seconds_of
from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment
from timetrial.races import run_race
from timetrial.records.files import near, write_once
from timetrial.results.results import Results
from timetrial.statistics.verdict import DIFFERENT
from timetrial.tuning.search import Search
from timetrial.tuning.space import BATCH_SIZE, Candidate, Space
from timetrial.tuning.trials import Trials, bytes_of
from timetrial.tuning.tuned import Tuned

AT_ONCE = 4  # candidates in one heat, beside the base
BUDGET_S = 300.0
RACE_S = 60.0  # kept of the budget for the race
SPEC, HEATS, RACES = "tune.json", "heats", "race"


def tune(
    source: str | None = None,
    /,
    *,
    budget: str | float = BUDGET_S,
    memory: str | int | None = None,
    results: str | Path = "results",
    quiet: bool = False,
    **keywords: Any,
) -> Tuned:
    """The fastest of many ways to do the same work, in a budget of time:

        tt.tune(network="lenet5", backend=["pytorch", "eigen", "onednn"], threads=[1, 2], budget="5m")

    The first value of each key makes the base, what you do now. Candidates are proven and measured in heats
    beside it, those first that a search proposes (Optuna); the best is then raced against the base, and wins
    only if the race says so: "the default is as good" is an answer. The file of an experiment will do too.
    Of several batch sizes, batch_size=[32, 64], it is the samples per second that are compared and raced;
    `memory`, "2GB", is the most that a candidate may hold (without mapped files).

    Raises InputError where there is nothing to tune or the work differs, Unavailable without Optuna.
    """
    return tune_experiment(
        Experiment.load(source, **keywords),
        Path(results),
        budget_s=seconds_of(budget),
        memory=None if memory is None else bytes_of(memory),
        quiet=quiet,
    )


def tune_experiment(
    experiment: Experiment,
    results: Path,
    *,
    budget_s: float = BUDGET_S,
    memory: int | None = None,
    quiet: bool = False,
) -> Tuned:
    """The same, of an experiment; its records are in a folder tune-... of `results`. `memory` in bytes."""
    space = _space(experiment)
    search = Search(space, experiment.spec.seed)  # without Optuna nothing is begun
    folder = results / f"tune-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    if not quiet:
        print(
            f"timetrial: if this is ended, `timetrial tune --resume {near(folder)}` goes on", file=sys.stderr
        )
    asked = {
        "spec": experiment.spec.model_dump(mode="json", exclude_none=True),
        "budget_s": budget_s,
        "memory_bytes": memory,
    }
    write_once(folder / SPEC, json.dumps(asked, indent=1).encode())
    return _search(experiment, Trials(space, search, memory), folder, budget_s, quiet=quiet)


def resume_tuning(folder: Path, *, quiet: bool = False) -> Tuned:
    """Goes on with a search that was ended: what was measured is not measured again."""
    try:
        asked = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} is no folder of `timetrial tune`: it has no {SPEC}") from None
    experiment = Experiment.from_dict(asked["spec"])
    space = _space(experiment)
    search = Search(space, experiment.spec.seed)
    trials = Trials(space, search, asked.get("memory_bytes"))
    return _search(experiment, trials, folder, asked["budget_s"], quiet=quiet)


def _space(experiment: Experiment) -> Space:
    """Those that can be launched here."""
    possible = [one.case for one in experiment.cases if one.unavailable is None]
    if not experiment.cases or experiment.cases[0].unavailable is not None:
        why = experiment.cases[0].unavailable if experiment.cases else "no case"
        raise InputError(f"the base, the first of the cases, cannot be launched here: {why}")
    return Space(possible)


def _search(experiment: Experiment, trials: Trials, folder: Path, budget_s: float, *, quiet: bool) -> Tuned:
    space, search = trials.space, trials.search
    for earlier in sorted((folder / HEATS).glob("*")):
        trials.note(Results(earlier))
    began, longest = time.monotonic(), 0.0
    while time.monotonic() - began + longest < budget_s - RACE_S or len(trials.found) < 2:
        chosen = search.ask(AT_ONCE)
        chosen = [one for one in chosen if one.case.id != space.base.case.id] if trials.found else chosen
        if not chosen:
            break
        started = time.monotonic()
        heat = _document(experiment, [space.base, *(one for one in chosen if one is not space.base)])
        trials.note(Experiment.from_dict(heat).run(results=folder / HEATS, quiet=quiet))
        longest = max(longest, time.monotonic() - started)
    tuned = Tuned(folder, list(trials.found.values()), len(space.candidates), None)
    best = tuned.best
    if best is None:
        return tuned
    challenger = next(one for one in space.candidates if one.case.id == best.case)
    document = _document(experiment, [space.base, challenger])
    left_s = max(RACE_S, budget_s - (time.monotonic() - began))
    document["measure"] = {"budget": left_s}
    race = run_race(
        Experiment.from_dict(document), folder / RACES, metric=space.metric, confirms=DIFFERENT, quiet=quiet
    )
    return Tuned(folder, tuned.trials, tuned.candidates, race)


def _document(experiment: Experiment, candidates: Sequence[Candidate]) -> dict[str, Any]:
    work = candidates[0].case.workload
    workload = {
        "network": work.network,
        "dataset": work.dataset,
        "batch_size": None if BATCH_SIZE in candidates[0].point else work.batch_size,
        "optimizer": dict(work.optimizer),
        "dataset_folder": work.dataset_folder,
    }
    return {
        "name": experiment.spec.name,
        "seed": experiment.spec.seed,
        "workload": {key: value for key, value in workload.items() if value is not None},
        "contender": [one.contender() for one in candidates],
        "measure": {"launches": 1},
    }
