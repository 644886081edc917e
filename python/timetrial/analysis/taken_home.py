"""Settings of a row, and how to take them home: as variables, as an experiment, as a command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from timetrial.cases.case import NO_NETWORK
from timetrial.cases.environment import PREFIX, variables_of
from timetrial.cases.keys import is_callable_word
from timetrial.control import blas_variables, huge_pages, malloc, openmp
from timetrial.control.kernels import CORE_TYPE
from timetrial.control.threads import VARIABLES
from timetrial.optimizers import flat_keys
from timetrial.records.model import CaseRecord, Setting

# The variables that libraries read a setting from, when they are loaded.
_READ_FROM = {
    "threads": VARIABLES,
    CORE_TYPE: ("OPENBLAS_CORETYPE",),
    "onednn.max_cpu_isa": ("ONEDNN_MAX_CPU_ISA",),
    **{
        name: (variable,)
        for source in (malloc, openmp, blas_variables)
        for name, variable in source.VARIABLES.items()
    },
}
_LEFT_OUT = (None, NO_NETWORK)  # of a step of one's own


class RowSettings(list[Setting]):
    """What was asked of each and what is in force: a list. What it makes of them measures or starts the same
    again; where the files of a data set lie is to be said anew (`dataset_folder`)."""

    def __init__(self, settings: Iterable[Setting], case: CaseRecord):
        super().__init__(settings)
        self._case = case

    def environment(self) -> dict[str, str]:
        """The variables with which a process of yours starts so: `os.environ` before the first import, or
        `env NAME=VALUE python train.py`. Of settings that were asked; `beyond_environment` has the rest."""
        asked = self._case.settings
        found = {
            variable: asked[name].upper() if name == "onednn.max_cpu_isa" else asked[name]
            for name, variables in _READ_FROM.items()
            if name in asked
            for variable in variables
        }
        return found | malloc.variables_of(asked) | huge_pages.variables_of(asked) | variables_of(asked)

    @property
    def beyond_environment(self) -> list[str]:
        """Settings that were asked and that no variable can say: of the program itself, or of who starts it
        (affinity: `taskset`)."""
        said = {
            *_READ_FROM,
            malloc.WHOLE,
            *([huge_pages.NAME] if huge_pages.variables_of(self._case.settings) else []),
        }
        return [name for name in self._case.settings if name not in said and not name.startswith(PREFIX)]

    def to_toml(self) -> str:
        """An experiment of this one case: `timetrial run FILE`, `tt.run(file)`."""
        workload = {
            key: value
            for key, value in {
                "network": self._case.network,
                "dataset": self._case.dataset,
                "batch_size": self._case.batch_size,
                "buckets": self._case.named_buckets,
                "optimizer": self._case.optimizer,
            }.items()
            if value not in _LEFT_OUT
        }
        sections = {
            "[workload]": workload,
            "[[contender]]": contender_of(self._case.backend, self._case.task, self._case.settings),
        }
        return "\n".join(
            f"{title}\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())
            for title, table in sections.items()
        )

    def command(self, verb: str = "run") -> str:
        """The words that measure this one case again: `timetrial run network=... threads=2`."""
        case = self._case
        facts = {
            "network": case.network,
            "dataset": case.dataset,
            "batch_size": case.batch_size,
            "buckets": case.named_buckets,
            "task": case.task,
            **flat_keys(case.optimizer),
            **_who(case.backend),
            **case.settings,
        }
        words = (f"{key}={_word(value)}" for key, value in facts.items() if value not in _LEFT_OUT)
        return shlex.join(["timetrial", verb, *words])


def contender_of(backend: str, task: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """A case as a [[contender]] of an experiment."""
    numbers = {
        name: int(word) if word.isdecimal() and not name.startswith(PREFIX) else word
        for name, word in settings.items()
    }
    return {**_who(backend), "task": task, **numbers}


def _who(backend: str) -> dict[str, str]:
    return {"callable" if is_callable_word(backend) else "backend": backend}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
