"""The judge: a backend in double precision, asked for loss and gradients at values that somebody else shows.

`reference` differentiates the definitions of the layers, in plain loops, and shares no gradient with any
contender: it judges while a gradient step takes it a blink, and the proof's own recipe in batches that are
small enough. Above that `cblas` in f64 judges, whose layers `eigen` and `cblas` have too; it must itself
agree with `reference`, on the same network and a few images. Both run in the parent's own process, and never
while something is timed there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import distance, size_of
from timetrial.cases.case import Case, Workload
from timetrial.contenders.registry import resolve
from timetrial.contenders.settings import job_settings
from timetrial.control.cpus import allowed_cpus
from timetrial.core import Backend, Input, Network
from timetrial.errors import TimetrialError, Unavailable
from timetrial.processes.own_memory import give_back_freed
from timetrial.proof.parts import PartJudge, part_of
from timetrial.questions.observed import Tensors
from timetrial.workloads import Prepared

# Who gets the gradient of equal maxima: the first of them, canonical in timetrial, or every one the whole.
Ties = Literal["first", "all"]
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True)
class Answer:
    """In double precision. `activation`: of those nodes that the judge keeps. `state`: of layers, behind."""

    loss: float
    gradient: Tensors
    activation: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)
    state: Tensors = dataclasses.field(default_factory=dict)


class Judge(Protocol):
    """Whose numbers count. With the parameters it is given the states of layers, where there are any."""

    name: str

    def gradient(self, parameters: Tensors, batch: Tensors, *, activations: bool = False) -> Answer:
        """Loss and gradients of a batch at these parameters."""

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""

    def witness(self, ties: Ties = "first", images: int = 1) -> Witness:
        """One who looks at so many images of the same network, and takes `ties` this way."""


class Witness(Protocol):
    """A judge of an image at a time, or a few, which shows every activation and takes nudges (flips.py).
    `load` again behind whatever else a judge was asked: the two may share their memory."""

    nodes: Sequence[Mapping[str, Any]]
    ties: Ties
    work: int  # multiply-accumulates of one gradient
    is_large: bool  # computes some 5e9 of them a second, instead of 5e8

    def gradient(self, image: Tensors, nudges: Tensors, *, activations: bool = True) -> Answer:
        """Of its batch. With these amounts added to the outputs of nodes, and the sums that are gradients of
        a normalization's parameters off by so much of the sizes of their terms; every activation is shown."""

    def load(self, parameters: Tensors) -> None:
        """What the images after this are judged at: with the states of layers, where there are any."""


@dataclass(frozen=True)
class JudgingBackend:
    """A backend that may judge."""

    backend: str
    dtype: str = "f32"  # what the plug-in is asked for

    @property
    def name(self) -> str:
        """As records say it."""
        return self.backend if self.dtype == "f32" else f"{self.backend} ({self.dtype})"


_ASKING = threading.Lock()
_MAKING = threading.Lock()  # whoever asks at once would make a judge each: gigabytes, of large networks
SMALL = JudgingBackend("reference")  # always computes in double precision
LARGE = JudgingBackend("cblas", "f64")

# Multiply-accumulates of one gradient step. `reference` does about 2e9 a second on one core.
REFERENCE_LIMIT = 100_000_000
# Times as many in the proof's own recipe: of images that depend on each other, since the statistics of few
# magnify rounding, and of others.
STRESS_PATIENCE = {True: 2.5, False: 1.25}
# What the large judge is tried on: an odd number, so that two threads get unequal shares.
TRIAL_IMAGES = 3
TRIAL_TOLERANCE = 1e-9


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Around whatever asks a judge: launches end in threads of their own, and share it. What one has freed
    glibc would keep for its thread, gigabytes of a large network, and the next take as much again."""
    with _ASKING:
        try:
            yield
        finally:
            give_back_freed()


class NoJudge(TimetrialError):  # noqa: N818 - what it means, in the words of the record
    """Nobody can judge this workload here."""


class NativeJudge:
    """A native backend, built for one network and one size of batch."""

    def __init__(
        self,
        judge: JudgingBackend,
        network: Network,
        *,
        threads: int | None = None,
        settings: Mapping[str, str] | None = None,
    ):
        self.name = judge.name
        self.is_large = judge == LARGE
        self._network = network
        self._nudged: set[str] = set()
        asked = {**(settings or {}), **({} if threads is None else {"threads": str(threads)})}
        workload = Workload(network="", dataset="", batch_size=network.batch_size, optimizer={})
        case = Case(backend=judge.backend, workload=workload, dtype=judge.dtype, settings=asked)
        contender = resolve(case)
        self._backend = Backend(contender.path, preload=contender.preload)
        for name, value in job_settings(case, contender).items():
            self._backend.configure(name, value)
        self._states = {one["name"] for one in network.states}
        shapes = {one["name"]: tuple(one["shape"]) for one in network.initial_tensors}
        zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self._backend.build(network, zeros, tasks=("gradient", "forward"), dtype=judge.dtype)

    def gradient(self, parameters: Tensors, batch: Tensors, *, activations: bool = False) -> Answer:
        """Loss and gradients at these parameters."""
        self._load(parameters)
        return self._answer(batch, {}, activations=activations)

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""
        self._load(parameters)
        return self._backend.evaluate(batch)

    def witness(self, ties: Ties = "first", images: int = 1) -> Witness:
        """For the same network; the large judge takes ties in one way only."""
        if not self.is_large or ties != "first":
            network = self._network.resized(images)
            return NativeWitness(NativeJudge(SMALL, network, settings={"reference.ties": ties}), ties)
        if images == self._network.batch_size:
            return NativeWitness(self)
        threads = len(allowed_cpus())
        return NativeWitness(NativeJudge(LARGE, self._network.resized(images), threads=threads))

    def _load(self, parameters: Tensors) -> None:
        states = {name: tensor for name, tensor in parameters.items() if name in self._states}
        self._backend.write_tensors({name: parameters[name] for name in parameters.keys() - states.keys()})
        self._backend.write_tensors(states, role="state")

    def _answer(self, batch: Tensors, nudges: Tensors, *, activations: bool) -> Answer:
        self._nudge(nudges)
        loss = self._backend.step("gradient", batch)
        shown = self._backend.tensors("activation") if activations else {}
        kept = self._backend.tensors("state") if self._states else {}
        return Answer(loss, self._backend.tensors("gradient"), shown, kept)

    def _nudge(self, nudges: Tensors) -> None:
        shapes = {one["name"]: one["shape"] for one in (*self._network.nodes, *self._network.parameters)}
        nothing = {name: np.zeros(shapes[name]) for name in self._nudged - nudges.keys()}
        of_parameters = {one["name"] for one in self._network.parameters}
        amounts = {**nothing, **nudges}
        gradients = {name: values for name, values in amounts.items() if name in of_parameters}
        self._backend.write_tensors(gradients, role="gradient")
        self._backend.write_tensors(
            {name: amounts[name] for name in amounts.keys() - gradients.keys()}, role="activation"
        )
        self._nudged = set(nudges)


class NativeWitness:
    """A native judge of a batch of its own size."""

    def __init__(self, judge: NativeJudge, ties: Ties = "first"):
        self._judge = judge
        self.ties = ties
        self.nodes: Sequence[Mapping[str, Any]] = judge._network.nodes
        self.work = judge._network.multiply_accumulates("gradient")
        self.is_large = judge.is_large

    def load(self, parameters: Tensors) -> None:
        """What the images after this are judged at."""
        self._judge._load(parameters)

    def gradient(self, image: Tensors, nudges: Tensors, *, activations: bool = True) -> Answer:
        """Of these images, with these amounts added to the outputs of nodes."""
        return self._judge._answer(image, nudges, activations=activations)


def judge_of(prepared: Prepared, *, is_stress: bool = False) -> Judge:
    """Who judges this workload. NoJudge: it cannot run, or failed its own trial."""
    if prepared.network is None:
        raise NoJudge("there is no network that a judge could compute")
    network, part = prepared.network, part_of(prepared.network)
    if part < network.batch_size:
        small = network.resized(part)
        whole = functools.partial(_judge_of, _Described(network), choose_judge(network), LARGE)
        return PartJudge(
            _judge_of(_Described(small), choose_judge(small), LARGE),
            part,
            whole if network.couples_batch else None,
        )
    is_small = is_stress and network.batch_size <= reference_images(network)
    return _judge_of(_Described(network), SMALL if is_small else choose_judge(network), LARGE)


def choose_judge(network: Network) -> JudgingBackend:
    """By the work of a gradient step. Kinds that a user registered are known to `reference` alone."""
    is_small = network.multiply_accumulates("gradient") <= REFERENCE_LIMIT
    return SMALL if is_small or network.has_own_kinds else LARGE


def reference_images(network: Network) -> int:
    """Of this network, how many `reference` judges in the proof's own recipe."""
    work = max(1, network.multiply_accumulates("gradient"))
    limit = STRESS_PATIENCE[network.couples_batch] * REFERENCE_LIMIT
    return int(limit * network.batch_size) // work


class _Described:
    """A network as a key: the same layers and the same batch."""

    def __init__(self, network: Network):
        self.network = network
        self._key = repr(network.to_job())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Described) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)


def _judge_of(described: _Described, judge: JudgingBackend, large: JudgingBackend) -> Judge:
    """Launches that begin together wait for one, and share it."""
    with _MAKING:
        return _made(described, judge, large)


@functools.lru_cache(maxsize=3)  # of a workload: of its different images, of whole batches, of the recipe
def _made(described: _Described, judge: JudgingBackend, large: JudgingBackend) -> Judge:
    network = described.network
    try:
        if judge is not large:
            return NativeJudge(judge, network)
        _try_judge(judge, _Described(network.resized(TRIAL_IMAGES)))
        return NativeJudge(judge, network, threads=len(allowed_cpus()))
    except Unavailable as failure:
        raise NoJudge(f"the judge {judge.name} could not run: {failure}") from failure


def forget_judges() -> None:
    """Those of a large network hold gigabytes, which contenders need more. Made again they are not tried
    again."""
    _made.cache_clear()


@functools.lru_cache(maxsize=4)
def _try_judge(judge: JudgingBackend, described: _Described) -> None:
    """Against `reference`, at a size that both can do: doubles that compute the same agree far better than a
    contender in f32 has to."""
    small = described.network
    rng = np.random.default_rng(1)
    shapes = {one["name"]: tuple(one["shape"]) for one in small.parameters}
    # Small biases: with large ones a layer of relus may be off for every image, and then proves nothing.
    parameters: Tensors = {
        name: rng.normal(0, 1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.1, shape)
        for name, shape in shapes.items()
    }
    batch = {one.name: _trial_input(small, one, rng) for one in small.inputs}
    mine = NativeJudge(judge, small, threads=len(allowed_cpus())).gradient(parameters, batch)
    theirs = NativeJudge(SMALL, small).gradient(parameters, batch)
    errors = {"loss": abs(mine.loss - theirs.loss) / abs(theirs.loss)}
    for name, tensor in theirs.gradient.items():
        size = size_of(theirs.gradient, name) or 1.0
        errors[f"gradient {name}"] = distance(mine.gradient[name], tensor) / size
    worst = max(errors, key=lambda name: errors[name] if math.isfinite(errors[name]) else math.inf)
    if not errors[worst] <= TRIAL_TOLERANCE:
        raise NoJudge(
            f"the judge {judge.name} differs from {SMALL.name} on {TRIAL_IMAGES} images: "
            f"{worst}: relative error {errors[worst]:.2g}, tolerance {TRIAL_TOLERANCE:g}"
        )


def _trial_input(network: Network, one: Input, rng: np.random.Generator) -> NDArray[Any]:
    shape = (network.batch_size, *one.shape)
    if one.dtype == "f32":
        return rng.uniform(0, 1, shape).astype(np.float32)
    least = 1 if one.role == "lengths" else network.values_from(one.name)
    return np.resize(np.arange(least, network.values_below(one.name)), shape)
