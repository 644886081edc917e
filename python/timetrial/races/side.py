"""The sides of a race: who rides against whom, and whether that can be compared at all."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timetrial.cases.case import NO_NETWORK, Case
from timetrial.cases.environment import PREFIX as _ENVIRONMENT
from timetrial.cases.keys import is_callable_word
from timetrial.contenders.functions import shown, word_of
from timetrial.contenders.revisions import SETTING as REVISION
from timetrial.contenders.revisions import base_keys
from timetrial.environments import find_interpreter
from timetrial.errors import InputError, nearest
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase
from timetrial.in_process.settings import held
from timetrial.optimizers import flat_keys
from timetrial.records.metric import RACED
from timetrial.records.model import CaseRecord
from timetrial.results.results import Results

# What may differ between two sides without making the metric meaningless.
_SAME_WORK = ("network", "dataset", "optimizer", "task", "device", "dtype")
# What belongs to launches and not to a case: the sides of a race have it in common; variables in which they
# differ are settings of each.
_LIMITS = ("start_timeout_s", "progress_timeout_s")
_OF_LAUNCHES = (*_LIMITS, "budget")


@dataclass(frozen=True)
class Side:
    """One side: the keys of an experiment that has exactly one case.

    Side({"backend": "eigen", "network": "lenet5", "threads": 1}), or of the user's own step
    Side({"callable": "package.module:make_step", "python": "env/bin/python"}).
    """

    keys: Mapping[str, Any]  # of one case: backend or callable, network, threads, other settings

    def replace(self, **keys: Any) -> Side:
        """The same with other values."""
        return Side({**self.keys, **keys})

    @property
    def name(self) -> str:
        """'eigen threads=1'."""
        who = self.keys.get("backend") or self.keys.get("callable") or "?"
        rest = [f"{key}={value}" for key, value in self.keys.items() if key not in ("backend", "callable")]
        return " ".join([getattr(who, "__name__", shown(str(who))), *rest])


def sides_of(given: Sequence[Any]) -> list[Side]:
    """Each of AnySide, in the order given; a list among them stands for those in it."""
    return [
        side for one in given for side in (sides_of(one) if isinstance(one, list | tuple) else [side_of(one)])
    ]


def side_of(given: AnySide) -> Side:
    """A side from any of its forms: a function and a word with a colon are the user's own step, another word
    is a backend. InputError: it is none of them."""
    if isinstance(given, Side):
        return given
    if callable(given):
        return Side({"callable": word_of(given)})
    if isinstance(given, Results):
        rows = given.rows
        if len(rows) != 1:
            raise InputError(f"A side is one case; these results have {len(rows)}: narrow them with sel().")
        return Side({**keys_of(rows[0].case), **keys_behind(given.experiment.spec)})
    if isinstance(given, str):
        return Side({"callable" if ":" in given else "backend": given})
    if not isinstance(given, Mapping):
        raise InputError(
            f"A side is {given!r}; expected a function that makes a step, its word "
            '("package.module:make_step"), a backend\'s name, a mapping of keys, or results of one row.'
        )
    return Side(dict(given))


AnySide = Side | Results | Mapping[str, Any] | str | Callable[[], Any]


def keys_of(case: CaseRecord) -> dict[str, Any]:
    """The keys that make this case again."""
    keys: dict[str, Any] = {
        "callable" if is_callable_word(case.backend) else "backend": case.backend,
        "network": case.network,
        **({"dataset": case.dataset} if case.dataset != NO_NETWORK else {}),
        **({"batch_size": case.batch_size} if case.batch_size is not None else {}),
        **({"buckets": case.buckets} if case.buckets > 1 else {}),
        "task": case.task,
        **flat_keys(case.optimizer),
        **case.settings,
    }
    if "threads" in keys:
        keys["threads"] = int(keys["threads"])
    return keys


def keys_behind(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the experiment says about all of its launches: where data lies, environment, limits."""
    tables = [spec.get("workload") or {}, spec.get("axes") or {}, *(spec.get("contender") or [])]
    folders = {str(table["dataset_folder"]) for table in tables if table.get("dataset_folder")}
    measure = spec.get("measure") or {}
    return {
        **({"dataset_folder": folders.pop()} if len(folders) == 1 else {}),
        **{f"{_ENVIRONMENT}{key}": value for key, value in (spec.get("environment") or {}).items()},
        **{key: measure[key] for key in _LIMITS if measure.get(key) is not None},
    }


def _is_of_launches(key: str) -> bool:
    return key in _OF_LAUNCHES or key.startswith(_ENVIRONMENT)


def _of_launches(sides: Sequence[Side], common: Mapping[str, Any]) -> dict[str, Any]:
    """What `common` and the sides say about launches. InputError where they contradict each other."""
    found: dict[str, Any] = {key: value for key, value in common.items() if _is_of_launches(key)}
    for key in dict.fromkeys(key for side in sides for key in side.keys if _is_of_launches(key)):
        values = [side.keys.get(key, found.get(key)) for side in sides]
        differ = any(value != values[0] for value in values)
        if differ and key.startswith(_ENVIRONMENT):
            found.pop(key, None)
            continue
        if differ:
            raise InputError(
                f"The sides differ in {key} ({', '.join(map(repr, values))}): it holds for every launch of a "
                "race. Give all sides the same."
            )
        found[key] = values[0]
    return found


def experiment_of(sides: Sequence[Side], common: Mapping[str, Any], seed: int) -> Experiment:
    """The experiment whose cases are these sides, in this order. `common` holds for all of them; what
    `tt.settings` holds around the caller, for those that say nothing of it."""
    inherited = {k: v for k, v in held().items() if k not in common and any(k not in s.keys for s in sides)}
    sides = [Side({**inherited, **side.keys}) for side in sides]
    for side in sides:
        for key, value in side.keys.items():
            if isinstance(value, list | tuple):
                raise InputError(f"{side.name}: {key} has {len(value)} values; a side is one case.")
    shared = _of_launches(sides, common)
    own = {key: value for key, value in common.items() if _is_of_launches(key) and key not in shared}
    document = {
        "name": "race",
        "seed": seed,
        "contender": [_of_cases({**own, **side.keys}, shared) for side in sides],
        "axes": _of_cases(common, common),
        "measure": {key: shared[key] for key in _OF_LAUNCHES if key in shared},
        "environment": {
            key.removeprefix(_ENVIRONMENT): str(value)
            for key, value in shared.items()
            if key.startswith(_ENVIRONMENT)
        },
    }
    return Experiment.from_dict(document).holding(inherited)


def _of_cases(keys: Mapping[str, Any], shared: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if not (_is_of_launches(key) and key in shared)}


def against(experiment: Experiment, revision: str, setup: str | None) -> Experiment:
    """The race of the one case of an experiment against the same step of a revision, which is the base."""
    cases = [one.case for one in experiment.cases]
    if len(cases) != 1 or not is_callable_word(cases[0].backend):
        raise InputError(
            f"--against {revision} races one step of your own against the same one there; this is "
            f"{experiment!r}. Give one callable=package.module:function, and each key one value."
        )
    document = experiment.spec.model_dump(exclude_none=True)
    base = base_keys(revision, setup, find_interpreter(cases[0].settings.get("python")))
    axes = {key: document["axes"].pop(key) for key in base if key in document["axes"]}  # of mine alone
    mine = [{**axes, **one} for one in document.get("contender") or [{}]]
    document["contender"] = [*({**one, **base} for one in mine), *mine]
    options = ["--against", base[REVISION], *(["--base-setup", setup] if setup is not None else [])]
    again = experiment.again and f"{experiment.again} {shlex.join(options)}"
    return replace(Experiment.from_dict(document), again=again)


def check_trees(ready: Sequence[ReadyCase]) -> None:
    """InputError where a step beside one of a revision is not imported from the working tree."""
    own = [one.contender for one in ready if one.contender and one.contender.kind == "callable"]
    tree = next((one.tree for one in own if one.tree), None)
    for one in own if tree else ():
        file = one.path.resolve()
        if tree and one.tree is None and tree.place(file) == file:
            raise InputError(
                f"callable '{one.name}' is imported from {file}, which is not in the working tree "
                f"{tree.instead_of}: your changes would not be raced. Install the package in editable mode "
                "(pip install -e .), or run this where it lies."
            )


def check_sides(cases: Sequence[Case], metric: str) -> None:
    """InputError where this cannot be a race."""
    if metric not in RACED:
        raise InputError(f"There is no metric '{metric}'.{nearest(metric, RACED)}")
    if len(cases) < 2:
        raise InputError(
            "A race needs two sides, and there is one case. Give a key two values: backend=eigen,onednn "
            "or threads=1,2 (the first is the base; equal values are an A/A race)."
        )
    base = cases[0]
    for other in cases[1:]:
        differing = [key for key in _SAME_WORK if _work(base, key) != _work(other, key)]
        for key in ("batch_size", "buckets") if metric == "step_time" else ():
            if _work(base, key) != _work(other, key):
                raise InputError(
                    f"The sides differ in {key} ({_work(base, key)}, {_work(other, key)}): their step times "
                    "cannot be compared. Race their throughput: --metric samples_per_s."
                )
        if differing:
            key = differing[0]
            raise InputError(
                f"The sides differ in {key} ({_work(base, key)}, {_work(other, key)}): their {metric} "
                "cannot be compared. A race is between ways of doing the same work."
            )


def _work(case: Case, key: str) -> Any:
    return getattr(case.workload, key) if hasattr(case.workload, key) else getattr(case, key)
