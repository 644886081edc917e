"""A native backend without a process of its own, driven by the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
from launching import workload
from numpy.typing import NDArray

from timetrial.cases.case import Case
from timetrial.contenders.registry import resolve
from timetrial.contenders.settings import job_settings
from timetrial.core import Backend
from timetrial.questions.observed import Batches, Tensors
from timetrial.workloads import Prepared


class NativeTwin:
    """A contact whose contender is a plug-in in this process. Raises Unavailable where it cannot be had."""

    def __init__(self, prepared: Prepared, task: str, backend: str):
        case = Case(backend, workload("mlp"), settings={"threads": "1"})
        contender = resolve(case)
        self._backend = Backend(contender.path, preload=contender.preload)
        for name, value in job_settings(case, contender).items():
            self._backend.configure(name, value)
        self._task = task
        self._batches = Batches(prepared.job["streams"])
        files = {
            one["name"]: one["file"]
            for node in prepared.job["network"]["nodes"]
            for one in node["parameters"]
        }
        weights = {name: np.load(file) for name, file in files.items()}
        tasks = tuple({task, "gradient"})
        self._backend.build(prepared.network, weights, prepared.job["optimizer"], tasks=tasks)
        self._stream, self._row = "train", 0

    def stream(self, name: str) -> None:
        self._stream, self._row = name, 0

    def reset(self) -> None:
        self._backend.reset()
        self._row = 0

    def run(self, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            losses.append(self._backend.step(self._task, self._batch()))
            self._row += 1
        return losses

    def gradient(self) -> float:
        return self._backend.step("gradient", self._batch())

    def show(self, places: NDArray[np.int64] | None) -> Tensors:
        states = {name: np.array(values) for name, values in self._backend.tensors("state").items()}
        self.gradient()
        shown = self.dump("activation")
        self._backend.write_tensors(states, role="state")
        return shown if places is None else {name: values[places] for name, values in shown.items()}

    def dump(self, role: str) -> Tensors:
        return {name: np.array(values) for name, values in self._backend.tensors(role).items()}

    def outputs(self) -> NDArray[Any]:
        return self._backend.evaluate(self._batches.batch(self._stream, 0))

    def _batch(self) -> Tensors:
        return self._batches.batch(self._stream, self._row)
