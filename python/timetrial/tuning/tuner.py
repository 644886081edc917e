"""Tuning: heats measure what a search asks for, and the fastest again; a race judges the best of them."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timetrial.cases.budget import seconds_of
from timetrial.cases.case import NO_NETWORK
from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError
from timetrial.experiment.allocator import with_settled_allocator
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.runner import run_mixed
from timetrial.races import run_race
from timetrial.records.files import near, write_once
from timetrial.results.results import Results
from timetrial.statistics.verdict import DIFFERENT
from timetrial.tuning.finals import finalists
from timetrial.tuning.search import Search
from timetrial.tuning.space import BATCH_SIZE, Candidate, Space
from timetrial.tuning.trials import Trials
from timetrial.tuning.tuned import Tuned

AT_ONCE = 4  # candidates in one heat, beside the base
BUDGET_S = 300.0
RACE_S = 60.0  # kept of the budget for the race
FINALS = 0.2  # of the rest, kept for another look at those that the first cannot tell apart
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
    beside it, those first that a search proposes (Optuna), and those that one look cannot tell from the
    fastest once more, together. The best is then raced against the base, and wins only if the race says
    so: "the default is as good" is an answer. The file of an experiment will do too.
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
    experiment = with_settled_allocator(experiment)
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
    return _search(_Ride(experiment, Trials(space, search, memory), folder, budget_s, quiet))


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
    return _search(_Ride(experiment, trials, folder, asked["budget_s"], quiet))


def _space(experiment: Experiment) -> Space:
    """Those that can be launched here."""
    possible = [one.case for one in experiment.cases if one.unavailable is None]
    if not experiment.cases or experiment.cases[0].unavailable is not None:
        why = experiment.cases[0].unavailable if experiment.cases else "no case"
        raise InputError(f"the base, the first of the cases, cannot be launched here: {why}")
    return Space(possible)


@dataclass(frozen=True)
class _Ride:
    """A search that is under way."""

    experiment: Experiment
    trials: Trials
    folder: Path
    budget_s: float
    quiet: bool
    began: float = field(default_factory=time.monotonic)

    @property
    def passed_s(self) -> float:
        """Of the budget."""
        return time.monotonic() - self.began

    def heat(self, candidates: Sequence[Candidate]) -> float:
        """Each proven, unless a heat before this one proved it, and measured once, beside the base. Returns
        the seconds that it took."""
        began, base = time.monotonic(), self.trials.space.base
        document = _document(self.experiment, [base, *(one for one in candidates if one is not base)])
        heats = self.folder / HEATS
        done = sorted(heats.glob("*"))
        self.trials.note(run_mixed(Experiment.from_dict(document), heats, done, quiet=self.quiet))
        return time.monotonic() - began


def _search(ride: _Ride) -> Tuned:
    """First looks, finals of those that they cannot tell from the fastest, and the race of the best."""
    for earlier in sorted((ride.folder / HEATS).glob("*")):
        ride.trials.note(Results(earlier))
    _first_looks(ride)
    _finals(ride)
    space, found = ride.trials.space, list(ride.trials.found.values())
    tuned = Tuned(ride.folder, found, len(space.candidates), None)
    best = tuned.best
    if best is None:
        return tuned
    challenger = next(one for one in space.candidates if one.case.id == best.case)
    document = _document(ride.experiment, [space.base, challenger])
    document["measure"] = {"budget": max(RACE_S, ride.budget_s - ride.passed_s)}
    race = run_race(
        Experiment.from_dict(document),
        ride.folder / RACES,
        metric=space.metric,
        confirms=DIFFERENT,
        quiet=ride.quiet,
    )
    return Tuned(ride.folder, found, tuned.candidates, race)


def _first_looks(ride: _Ride) -> None:
    """Until the budget has only finals and race left; at one candidate beside the base in any case."""
    trials, longest = ride.trials, 0.0
    until_s = (ride.budget_s - RACE_S) * (1 - FINALS)
    while ride.passed_s + longest < until_s or len(trials.found) < 2:
        chosen = trials.search.ask(AT_ONCE)
        chosen = [one for one in chosen if one is not trials.space.base or not trials.found]
        if not chosen:
            break
        longest = max(longest, ride.heat(chosen))


def _finals(ride: _Ride) -> None:
    """Heats of ever fewer, as long as the race has its time."""
    by_id, longest = {one.case.id: one for one in ride.trials.space.candidates}, 0.0
    while ride.passed_s + longest < ride.budget_s - RACE_S:
        chosen = finalists(list(ride.trials.found.values())[1:])
        if not chosen:
            break
        longest = max(longest, ride.heat([by_id[one.case] for one in chosen]))


def _document(experiment: Experiment, candidates: Sequence[Candidate]) -> dict[str, Any]:
    work = candidates[0].case.workload
    workload = {
        "network": work.network,
        "dataset": work.dataset,
        "batch_size": None if BATCH_SIZE in candidates[0].point else work.batch_size,
        "optimizer": dict(work.optimizer),
        "dataset_folder": work.dataset_folder,
        "buckets": work.buckets if work.buckets > 1 else None,
    }
    return {
        "name": experiment.spec.name,
        "seed": experiment.spec.seed,
        "workload": {key: value for key, value in workload.items() if value not in (None, NO_NETWORK, {})},
        "contender": [one.contender() for one in candidates],
        "measure": {"launches": 1},
    }
