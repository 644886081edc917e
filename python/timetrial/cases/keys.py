"""Which keys an experiment knows, and where each belongs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from timetrial.cases.settings import PROCESS_SETTINGS, SETTINGS
from timetrial.errors import InputError, nearest
from timetrial.optimizers import optimizer_keys, schedule_keys

# Each key with its meaning, which the reference prints.
WORKLOAD_KEYS = {
    "network": "what is trained: a name, a .toml file, or `package.module:function`",
    "width": "units of each hidden layer, of a network whose size can be chosen: `mlp`",
    "depth": "how many hidden layers it has, of such a network",
    "dataset": "what it is trained on: a name; unless told otherwise the network's own",
    "dataset_else": "what it is trained on where `dataset` is not ready here (`timetrial datasets list`)",
    "dataset_folder": "your folder with the files of the data set; otherwise where they are installed",
    "batch_size": "samples in a step; unless told otherwise the network's own",
    "buckets": "into how many groups of like length sequences are sorted, of which each batch has one: "
    "`buckets=8`; unless told otherwise 1",
}
SIZE_KEYS = ("width", "depth")
OPTIMIZER_PREFIX = "optimizer."
OPTIMIZER_KEYS = {
    **{f"{OPTIMIZER_PREFIX}{key}": words for key, words in optimizer_keys().items()},
    **{f"{OPTIMIZER_PREFIX}schedule.{key}": words for key, words in schedule_keys().items()},
}
# Who computes: one of the two.
CONTENDER_KEYS = {
    "backend": "a name of `timetrial list backends`, `NAME@VERSION`, a plug-in's path, an adapter's folder; "
    "`installed`: every framework that is there",
    "callable": "a function of yours that makes a step: `package.module:function`, from Python the function",
}
CASE_KEYS = {
    **CONTENDER_KEYS,
    "task": "what a step does: `train`, `gradient` (no update) or `forward` (inference)",
    "device": "where it computes: `cpu`, the only one yet",
    "dtype": "type of the numbers: `f32`, the only one yet",
    "semantics": "`equal`, the only one yet: every contender does the same arithmetic",
}

# What a word of the command line may set besides a key of the cases: word -> place in the experiment.
EXPERIMENT_KEYS = {
    "name": ("name",),
    "question": ("question",),
    "seed": ("seed",),
    "epochs": ("train", "epochs"),
    "train.epochs": ("train", "epochs"),
    "most_steps": ("train", "most_steps"),
    "train.most_steps": ("train", "most_steps"),
    "effort": ("measure", "effort"),
    "measure.effort": ("measure", "effort"),
    "reference": ("measure", "reference"),
    "measure.reference": ("measure", "reference"),
    "launches": ("measure", "launches"),
    "measure.launches": ("measure", "launches"),
    "learning_seeds": ("measure", "learning_seeds"),
    "measure.learning_seeds": ("measure", "learning_seeds"),
    "resource_launches": ("measure", "resource_launches"),
    "measure.resource_launches": ("measure", "resource_launches"),
    "learning": ("measure", "learning"),
    "measure.learning": ("measure", "learning"),
    "isolated": ("measure", "isolated"),
    "measure.isolated": ("measure", "isolated"),
    "budget": ("measure", "budget"),
    "measure.budget": ("measure", "budget"),
    "most_cases": ("measure", "most_cases"),
    "measure.most_cases": ("measure", "most_cases"),
    "start_timeout_s": ("measure", "start_timeout_s"),
    "measure.start_timeout_s": ("measure", "start_timeout_s"),
    "progress_timeout_s": ("measure", "progress_timeout_s"),
    "measure.progress_timeout_s": ("measure", "progress_timeout_s"),
}


# Settings of which no other one is a part, as malloc.mmap_max is of malloc.
_WITHOUT_PARTS = {
    name for name in PROCESS_SETTINGS if not any(one.startswith(f"{name}.") for one in SETTINGS)
}


def is_workload(key: str) -> bool:
    """Whether a flat key belongs to the workload."""
    return key in WORKLOAD_KEYS or key.startswith(OPTIMIZER_PREFIX)


def is_setting(key: str) -> bool:
    """Whether a flat key is a setting of a library or of the process."""
    return not is_workload(key) and key not in CASE_KEYS


def check_keys(keys: Iterable[str], where: str, *, also: Iterable[str] = ()) -> None:
    """Raises InputError for a key that no case can have. Dotted settings: their backend judges later."""
    known = (*WORKLOAD_KEYS, *OPTIMIZER_KEYS, *CASE_KEYS, *PROCESS_SETTINGS)
    for key in keys:
        if key.startswith(OPTIMIZER_PREFIX):
            if key not in OPTIMIZER_KEYS:
                raise InputError(
                    f"{where}: the optimizer has no '{key[len(OPTIMIZER_PREFIX) :]}'."
                    f"{nearest(key, OPTIMIZER_KEYS)}"
                )
        elif key == "optimizer":
            raise InputError(
                f'{where}: optimizer must be a table, for example {{ name = "sgd", learning_rate = 0.02 }}.'
            )
        elif "." not in key and key not in known:
            raise InputError(f"{where}: there is no key '{key}'.{nearest(key, (*known, *also))}")
        elif "." in key and key.split(".")[0] in (*WORKLOAD_KEYS, *CASE_KEYS, *_WITHOUT_PARTS):
            raise InputError(f"{where}: '{key.split('.')[0]}' is not a table, so '{key}' cannot be.")


def check_workload_keys(keys: Iterable[str], where: str) -> None:
    """The same for [workload], which takes nothing but the workload's own keys."""
    for key in keys:
        if not is_workload(key):
            known = (*WORKLOAD_KEYS, *OPTIMIZER_KEYS)
            place = (
                " It belongs into [axes] or a [[contender]]."
                if key in (*CASE_KEYS, *PROCESS_SETTINGS)
                else ""
            )
            raise InputError(f"{where}: a workload has no '{key}'.{place or nearest(key, known)}")
    check_keys(keys, where)


_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_callable_word(word: str) -> bool:
    """Whether a backend's word names a function of the user's: "package.module:function"."""
    return _CALLABLE.fullmatch(word) is not None


def callable_word(value: object) -> str:
    """The value of the key `callable`. InputError: it is not "package.module:function"."""
    if not isinstance(value, str) or not is_callable_word(value):
        path = isinstance(value, str) and ("/" in value or value.partition(":")[0].endswith(".py"))
        cure = " A module, not a path: it is looked for in the working directory too." if path else ""
        raise InputError(
            f"callable is {value!r}; expected the module and the function that makes a step, "
            f'"package.module:function", for example "mypackage.training:make_step".{cure}'
        )
    return value


_MEANT = {"torch": "pytorch", "tf": "tensorflow"}  # names by which packages are imported


def backend_name(word: Any) -> Any:
    """The name of a backend: `torch` means pytorch, `torch@2.1` a version of it. Others as they are."""
    name, at, version = str(word).partition("@")
    return _MEANT[name] + at + version if name in _MEANT else word


def setting_word(value: Any) -> str:
    """Values of settings are the words the user gave: 2 is "2", true is "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
