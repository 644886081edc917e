"""What a contender showed at certain moments, and the order in which it is asked: parameters and states
before a step, the step, parameters and states after it. Nothing here judges (proof/court.py does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from timetrial import npy

Tensors = dict[str, NDArray[Any]]


def samples_of(stream: Mapping[str, Any]) -> Tensors:
    """The arrays of a stream of the job, mapped."""
    return {name: npy.mapped(file) for name, file in stream["tensors"].items()}


def rows_of(samples: Tensors, rows: Any) -> Tensors:
    """Some samples, by number or by slice, of every array."""
    return {name: array[rows] for name, array in samples.items()}


def sample_count(samples: Tensors) -> int:
    """How many samples every array has."""
    return min(len(array) for array in samples.values())


@dataclass(frozen=True)
class Look:
    """Parameters, the states of the optimizer ("<parameter>.velocity"), and those of layers (running means),
    at one moment; a contender may show no state of its optimizer."""

    parameter: Tensors
    state: Tensors = field(default_factory=dict)
    layer_state: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """What a contender computed from the values `before`, on the batch `row` of `stream`.

    `name` says when, for people ("step 3"; "" for the first gradient). `fresh`: right after a reset, so
    `before` must be the initial values, and every state 0. `step`: how many steps it had taken since then,
    which the rate and the rule may depend on. `earlier`: the look one step before `before`. `shown`: what
    the layers made of the batch, of its samples that are judged (proof/parts.py). `kept`: the look behind,
    where nothing may have changed; `moved`: states of layers behind a gradient. A group is empty where
    nothing of the kind was asked or shown.
    """

    name: str
    stream: str
    row: int
    before: Look
    fresh: bool = False
    step: int = 0
    earlier: Look | None = None
    loss: float | None = None
    shown: Tensors | None = None
    gradient: Tensors | None = None
    after: Look | None = None
    output: NDArray[Any] | None = None
    kept: Look | None = None
    moved: Tensors | None = None


@dataclass(frozen=True)
class Plain:
    """Steps from the initial values of which nothing was seen but the losses, and where they ended; beside it
    the same steps, each of which was looked into."""

    losses: list[float]
    end: Look
    seen_losses: list[float]
    seen_end: Look


class Contact(Protocol):
    """What can be asked of a contender. `run` gives the losses of its steps."""

    def stream(self, name: str) -> None:
        """The next steps use this stream, from its first batch."""

    def reset(self) -> None:
        """Initial values, empty optimizer, first batch."""

    def run(self, steps: int) -> list[float]:
        """A segment through the loop and the verb that are timed; its losses."""

    def gradient(self) -> float:
        """One step without update; its loss."""

    def dump(self, role: str) -> Tensors:
        """Every tensor of a role."""

    def show(self, places: NDArray[np.int64] | None) -> Tensors:
        """What the layers make of the batch that comes next, where they learn: of the samples at these
        places of it, or of all. Nothing that a step sees is different behind it."""

    def outputs(self) -> NDArray[Any]:
        """Inference between steps."""

    def predicted(self) -> NDArray[Any]:
        """Of the last step of the task forward."""


def look(contact: Contact) -> Look:
    """Parameters and states now."""
    return Look(contact.dump("parameter"), contact.dump("optimizer"), contact.dump("state"))


class Batches:
    """The batches of a job's streams: what the contender's loop gathers, gathered here."""

    def __init__(self, streams: dict[str, dict[str, Any]]):
        self._files = streams
        self._open: dict[str, tuple[Tensors, Tensors, NDArray[np.int64]]] = {}

    def batch(self, stream: str, row: int) -> Tensors:
        """The batch of step `row` of a stream, from 0: by the names of the network's inputs."""
        if stream not in self._open:
            files = self._files[stream]
            order = npy.mapped(files["order"])
            drawn = samples_of({"tensors": files.get("drawn", {})})
            self._open[stream] = samples_of(files), drawn, order
        samples, drawn, order = self._open[stream]
        row %= len(order)
        batch = rows_of(samples, order[row])
        size = order.shape[1]
        taken = {
            name: array[np.arange(row * size, (row + 1) * size) % len(array)] for name, array in drawn.items()
        }
        return {**batch, **taken}

    @cached_property
    def names(self) -> frozenset[str]:
        """Of the streams that have an order."""
        return frozenset(name for name, files in self._files.items() if "order" in files)
