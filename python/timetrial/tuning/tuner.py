"""Tuning: heats measure what the search asks for, then a race judges the best against the base."""

from __future__ import annotations

import json
import math
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
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
from timetrial.tuning.space import Candidate, Space
from timetrial.tuning.tuned import Trial, Tuned

AT_ONCE = 4  # candidates in one heat, beside the base
BUDGET_S = 300.0
RACE_S = 60.0  # kept of the budget for the race
SPEC, HEATS, RACES = "tune.json", "heats", "race"


def tune(
    source: str | None = None,
    /,
    *,
    budget: str | float = BUDGET_S,
    results: str | Path = "results",
    quiet: bool = False,
    **keywords: Any,
) -> Tuned:
    """The fastest of many ways to do the same work, in a budget of time:

        tt.tune(network="lenet5", backend=["pytorch", "eigen", "onednn"], threads=[1, 2], budget="5m")

    The first value of each key makes the base, what you do now. Candidates are proven and measured in heats
    beside it, those first that a search proposes (Optuna); the best is then raced against the base, and wins
    only if the race says so: "the default is as good" is an answer. The file of an experiment will do too.

    Raises InputError where there is nothing to tune or the work differs, Unavailable without Optuna.
    """
    return tune_experiment(
        Experiment.load(source, **keywords), Path(results), budget_s=seconds_of(budget), quiet=quiet
    )


def tune_experiment(
    experiment: Experiment, results: Path, *, budget_s: float = BUDGET_S, quiet: bool = False
) -> Tuned:
    """The same, of an experiment; its records are in a folder tune-... of `results`."""
    space = _space(experiment)
    search = Search(space, experiment.spec.seed)  # without Optuna nothing is begun
    folder = results / f"tune-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    if not quiet:
        print(
            f"timetrial: if this is ended, `timetrial tune --resume {near(folder)}` goes on", file=sys.stderr
        )
    asked = {"spec": experiment.spec.model_dump(mode="json", exclude_none=True), "budget_s": budget_s}
    write_once(folder / SPEC, json.dumps(asked, indent=1).encode())
    return _search(experiment, space, search, folder, budget_s, quiet=quiet)


def resume_tuning(folder: Path, *, quiet: bool = False) -> Tuned:
    """Goes on with a search that was ended: what was measured is not measured again."""
    try:
        asked = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} is no folder of `timetrial tune`: it has no {SPEC}") from None
    experiment = Experiment.from_dict(asked["spec"])
    space = _space(experiment)
    search = Search(space, experiment.spec.seed)
    return _search(experiment, space, search, folder, asked["budget_s"], quiet=quiet)


def _space(experiment: Experiment) -> Space:
    """Those that can be launched here."""
    possible = [one.case for one in experiment.cases if one.unavailable is None]
    if not experiment.cases or experiment.cases[0].unavailable is not None:
        why = experiment.cases[0].unavailable if experiment.cases else "no case"
        raise InputError(f"the base, the first of the cases, cannot be launched here: {why}")
    return Space(possible)


def _search(
    experiment: Experiment, space: Space, search: Search, folder: Path, budget_s: float, *, quiet: bool
) -> Tuned:
    trials: dict[str, Trial] = {}
    for earlier in sorted((folder / HEATS).glob("*")):
        _note(trials, space, search, Results(earlier))
    began, longest = time.monotonic(), 0.0
    while time.monotonic() - began + longest < budget_s - RACE_S or len(trials) < 2:
        chosen = search.ask(AT_ONCE)
        chosen = [one for one in chosen if one.case.id != space.base.case.id] if trials else chosen
        if not chosen:
            break
        started = time.monotonic()
        heat = _document(experiment, [space.base, *(one for one in chosen if one is not space.base)])
        _note(trials, space, search, Experiment.from_dict(heat).run(results=folder / HEATS, quiet=quiet))
        longest = max(longest, time.monotonic() - started)
    tuned = Tuned(folder, list(trials.values()), len(space.candidates), None)
    best = tuned.best
    if best is None:
        return tuned
    challenger = next(one for one in space.candidates if one.case.id == best.case)
    document = _document(experiment, [space.base, challenger])
    left_s = max(RACE_S, budget_s - (time.monotonic() - began))
    document["measure"] = {"budget": left_s}
    race = run_race(Experiment.from_dict(document), folder / RACES, confirms=DIFFERENT, quiet=quiet)
    return Tuned(folder, tuned.trials, tuned.candidates, race)


def _document(experiment: Experiment, candidates: Sequence[Candidate]) -> dict[str, Any]:
    work = candidates[0].case.workload
    workload = {
        "network": work.network,
        "dataset": work.dataset,
        "batch_size": work.batch_size,
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


def _note(trials: dict[str, Trial], space: Space, search: Search, results: Results) -> None:
    """What a heat found: once for each candidate."""
    rows = {row.case.id: row for row in results.rows}
    base = rows.get(space.base.case.id)
    if base is None or base.outcome is None:
        return  # it was ended before anything was found
    base_ns = base.step_time_ns.estimate if base.outcome == "ok" and base.step_time_ns else None
    if base_ns is None and not trials:
        raise InputError(
            f"the base, the first of the cases, cannot be measured: {base.outcome}: {base.reason}"
        )
    for candidate in _of(space, rows):
        row = rows[candidate.case.id]
        if row.outcome is None or candidate.case.id in trials:
            continue
        ratio, reason = None, row.reason
        if base_ns is None:
            reason = reason or f"the base failed beside it: {base.outcome}"
        elif row.outcome == "ok" and row.step_time_ns is not None:
            ratio = row.step_time_ns.estimate / base_ns
        trials[candidate.case.id] = Trial(candidate.case.id, candidate.point, ratio, row.outcome, reason)
        search.tell(candidate, None if ratio is None else math.log(ratio))


def _of(space: Space, rows: dict[str, Any]) -> Iterator[Candidate]:
    """The candidates of a heat, the base first."""
    return (one for one in space.candidates if one.case.id in rows)
