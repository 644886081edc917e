"""A native backend in one's own process: for looking into it, for tests and notebooks.

Measurements that are compared run in processes of their own (timetrial.run).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timetrial.core import _core
from timetrial.core.codes import DTYPES, FLAGS, PARTS, ROLES, TASKS, code, words_of
from timetrial.core.network import Network
from timetrial.errors import InputError, nearest

Batch = Mapping[str, ArrayLike]  # by the names of a network's inputs


def as_inputs(network: Network, arrays: Batch) -> dict[str, NDArray[Any]]:
    """Arrays in the types of the network's inputs. InputError for a name that is none of them."""
    inputs = {one.name: one for one in network.inputs}
    for name in arrays:
        if name not in inputs:
            raise InputError(f"the network has no input '{name}'.{nearest(name, inputs)}")
    return {
        name: whole_numbers(f"'{name}'", values)
        if inputs[name].dtype == "i64"
        else np.asarray(values, dtype=np.float32)
        for name, values in arrays.items()
    }


def whole_numbers(what: str, values: ArrayLike) -> NDArray[np.int64]:
    """As i64; InputError for anything that is not whole, instead of cutting it off."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{what} have dtype {array.dtype}; expected whole numbers")
    return array.astype(np.int64)


@dataclass(frozen=True)
class BackendDescription:
    """What a plug-in says of itself."""

    name: str
    version: str
    library: str  # what computes, with its version
    isa: str  # "" where it does not matter
    tasks: tuple[str, ...]
    parts: tuple[str, ...]  # () if steps are fused only
    flags: tuple[str, ...]
    devices: tuple[str, ...]
    dtypes: tuple[str, ...]
    layers: tuple[str, ...]
    optimizers: tuple[str, ...]
    settings: tuple[str, ...]


@dataclass(frozen=True)
class SettingReading:
    """What a setting has in force, and the source that says so."""

    effective: str
    how_read: str


class Backend:
    """A plug-in (.so). In order: `configure`, `build`, then steps.

    A file that is no plug-in raises InputError; what the plug-in does not have, Unavailable; a call that
    fails, BackendError.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, preload: Sequence[str | os.PathLike[str]] = ()
    ) -> None:
        """preload: libraries that the plug-in needs, by absolute path, opened before it."""
        self._session = _core.BackendSession(os.fspath(path), [os.fspath(library) for library in preload])
        self._network: Network | None = None

    @property
    def description(self) -> BackendDescription:
        """What the plug-in says of itself."""
        words = self._session.description_words()
        masks = self._session.description_masks()
        lists = self._session.description_lists()
        return BackendDescription(
            name=words["name"],
            version=words["version"],
            library=words["library"],
            isa=words["isa"],
            tasks=words_of(masks["tasks"], TASKS),
            parts=words_of(masks["parts"], PARTS),
            flags=words_of(masks["flags"], FLAGS),
            devices=tuple(lists["devices"]),
            dtypes=tuple(lists["dtypes"]),
            layers=tuple(lists["layers"]),
            optimizers=tuple(lists["optimizers"]),
            settings=tuple(lists["settings"]),
        )

    def configure(self, name: str, value: str) -> None:
        """Asks for a setting, before build."""
        self._session.configure(name, value)

    def read_setting(self, name: str) -> SettingReading:
        """What is in force now, by the library's own getter."""
        return SettingReading(*self._session.read_setting(name))

    def build(
        self,
        network: Network,
        weights: Mapping[str, NDArray[np.float32]],
        optimizer: Mapping[str, Any] | None = None,
        tasks: Sequence[str] = ("train",),
        dtype: str = "f32",
    ) -> None:
        """Builds a network, once. weights: all parameters by name. optimizer: name and its numbers;
        "rates": one for each step since reset(), if they change."""
        attributes = dict(optimizer or {})
        name = str(attributes.pop("name", ""))
        if not name and "train" in tasks:
            raise InputError('the task train needs an optimizer: {"name": "sgd", "learning_rate": 0.02}')
        mask = 0
        for task in tasks:
            mask |= code("task", task, TASKS)
        rates = [float(rate) for rate in attributes.pop("rates", ())]
        attributes.pop("options", None)
        numbers = {key: float(value) for key, value in attributes.items()}
        arrays = {key: np.asarray(value, dtype=np.float32) for key, value in weights.items()}
        self._session.build(network.native, name, numbers, rates, arrays, mask, code("dtype", dtype, DTYPES))
        self._network = network

    def step(self, task: str, batch: Batch | None = None) -> float:
        """One fused step; the mean loss before the update (NaN for forward). A batch is arrays by the names
        of the network's inputs; of those that are left out the last ones are taken again."""
        number = code("task", task, TASKS)
        self._load(batch)
        return self._session.step(number)

    def part(self, part: str, batch: Batch | None = None) -> float:
        """One part of a train step, in the order forward, loss, backward, update. `loss` returns the loss."""
        number = code("part", part, PARTS)
        self._load(batch)
        return self._session.part(number)

    def evaluate(self, batch: Batch | None = None) -> NDArray[np.float32]:
        """The prediction, in the shape of the output node, in inference mode."""
        self._load(batch)
        return self._session.evaluate()

    def facts(self) -> dict[str, str]:
        """What the backend says about what it built: versions, kernels, formats."""
        return self._session.facts()

    def profile(self, batch: Batch | None = None) -> list[tuple[str, str, int]]:
        """One train step with a clock around every layer: (node, direction, nanoseconds)."""
        self._load(batch)
        return self._session.profile()

    def reset(self) -> None:
        """Initial weights and an empty optimizer."""
        self._session.reset()

    def tensors(self, role: str) -> dict[str, NDArray[Any]]:
        """Copies, by name, of a role: parameter, gradient, activation, optimizer, state, input_gradient."""
        return self._session.tensors(code("role", role, ROLES))

    def write_tensor(self, name: str, values: ArrayLike, role: str = "parameter") -> None:
        """Overwrites one tensor."""
        self.write_tensors({name: values}, role)

    def write_tensors(self, values: Mapping[str, ArrayLike], role: str = "parameter") -> None:
        """Overwrites those, by name; InputError before the first where a name or a shape does not fit."""
        arrays = {name: np.asarray(one) for name, one in values.items()}
        self._session.write_tensors(code("role", role, ROLES), arrays)

    @property
    def session(self) -> _core.BackendSession:
        """The compiled object, for `Loop`."""
        return self._session

    @property
    def network(self) -> Network:
        """What was built. InputError: nothing yet."""
        if self._network is None:
            raise InputError("the backend has no network yet: call build() first")
        return self._network

    def _load(self, batch: Batch | None) -> None:
        if batch:
            self._session.load_batch(as_inputs(self.network, batch))
