"""The judge: a backend in double precision, asked for loss and gradients at values that a contender shows.

It computes every layer from what the contender showed in front of it, keeps what came out for the
comparison, and goes on with what the contender showed behind it. So masks of rectifiers, places of maxima
and statistics of batches are the contender's own, nothing that rounding did grows from layer to layer, and
gradients are exact at those values.

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import distance, sizes_of
from timetrial.cases.case import Case, Workload
from timetrial.contenders.registry import Contender, resolve
from timetrial.contenders.settings import job_settings
from timetrial.control.cpus import allowed_cpus
from timetrial.core import Backend, Input, Network
from timetrial.errors import TimetrialError, Unavailable
from timetrial.processes.own_memory import give_back_freed
from timetrial.proof.parts import PartJudge, is_huge, part_of, part_of_recipe
from timetrial.questions.observed import Tensors
from timetrial.workloads import Prepared
from timetrial.workloads.cache import cached

# Who gets the gradient of equal maxima: the first of them, canonical in timetrial, or every one the whole;
# and the slope of a rectifier at 0, where it is not 0.
Ties = Literal["first", "all", "first-half", "first-one", "all-half", "all-one"]
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True)
class Answer:
    """In double precision. `activation`: what each layer made of the values in front of it. `state`: of
    layers, behind."""

    loss: float
    gradient: Tensors
    activation: Tensors = dataclasses.field(default_factory=dict)
    state: Tensors = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def sizes(self) -> dict[str, float]:
        """What errors of each gradient are measured by."""
        return sizes_of(self.gradient)


class Judge(Protocol):
    """Whose numbers count. With the parameters it is given the states of layers, where there are any."""

    name: str
    network: Network  # in the batch that it computes
    is_large: bool  # computes some 5e9 multiply-accumulates a second, instead of 5e8

    def gradient(self, parameters: Tensors, batch: Tensors, shown: Tensors | None = None) -> Answer:
        """Loss and gradients of a batch at these parameters. `shown`: by node, what a contender showed of the
        batch's samples(), which takes the place of what the layers make."""

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""

    def sized(self, images: int, ties: Ties = "first", rounding: int = 0) -> Judge:
        """For batches of so many images of the same network, who takes ties this way, and whose gradients are
        off between layers by a draw of what rounding does; 0: by nothing."""


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
        self.network = network
        asked = {**(settings or {}), **({} if threads is None else {"threads": str(threads)})}
        case, contender = _resolved(judge, asked)
        self._backend = Backend(contender.path, preload=contender.preload)
        for name, value in job_settings(case, contender).items():
            self._backend.configure(name, value)
        self._states = {one["name"] for one in network.states}
        self._loaded: Tensors = {}
        shapes = {one["name"]: tuple(one["shape"]) for one in network.initial_tensors}
        zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self._backend.build(network, zeros, tasks=("gradient", "forward"), dtype=judge.dtype)

    def gradient(self, parameters: Tensors, batch: Tensors, shown: Tensors | None = None) -> Answer:
        """Loss and gradients at these parameters, and at what is shown."""
        self._load(parameters)
        self._backend.write_tensors(shown or {}, role="activation")
        loss = self._backend.step("gradient", batch)
        made = {} if shown is None else self._backend.tensors("activation")
        kept = self._backend.tensors("state") if self._states else {}
        return Answer(loss, self._backend.tensors("gradient"), made, kept)

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""
        self._load(parameters)
        return self._backend.evaluate(batch)

    def sized(self, images: int, ties: Ties = "first", rounding: int = 0) -> Judge:
        """For the same network; the large judge takes ties in one way only, and rounds nothing."""
        network = self.network.resized(images)
        if not self.is_large or ties != "first" or rounding:
            words = {"reference.ties": ties, "reference.rounding": str(rounding)}
            return NativeJudge(SMALL, network, settings=words)
        if images == self.network.batch_size:
            return self
        return NativeJudge(LARGE, network, threads=len(allowed_cpus()))

    def _load(self, parameters: Tensors) -> None:
        """No step moves what is trained: what was asked for last is there still, if nobody can change it."""
        states = {name: tensor for name, tensor in parameters.items() if name in self._states}
        trained = {name: parameters[name] for name in parameters.keys() - states.keys()}
        if not all(one is self._loaded.get(name) for name, one in trained.items()):
            self._loaded = {}
            self._backend.write_tensors(trained)
            self._loaded = {name: one for name, one in trained.items() if not one.flags.writeable}
        self._backend.write_tensors(states, role="state")


def _resolved(judge: JudgingBackend, settings: Mapping[str, str]) -> tuple[Case, Contender]:
    workload = Workload(network="", dataset="", batch_size=1, optimizer={})
    case = Case(backend=judge.backend, workload=workload, dtype=judge.dtype, settings=settings)
    return case, resolve(case)


def judge_of(prepared: Prepared, part: int | None = None) -> Judge:
    """Who judges this workload, in batches of `part` different images. NoJudge: it cannot run, or failed its
    own trial."""
    if prepared.network is None:
        raise NoJudge("there is no network that a judge could compute")
    network, part = prepared.network, part_of(prepared.network) if part is None else part
    kept = _made.__wrapped__ if is_huge(network) and part < network.batch_size else _judge_of
    whole = functools.partial(
        kept, _Described(network), choose_judge(network), LARGE
    )  # of a huge one: not kept
    if part == network.batch_size:
        return whole()
    small = network.resized(part)
    judge = _judge_of(_Described(small), choose_judge(small), LARGE)
    return PartJudge(judge, part, whole if network.couples_batch else None)


def recipe_part(network: Network) -> int:
    """How many different images a batch of the proof's own recipe has: as many as `reference` judges."""
    work = max(1, network.multiply_accumulates("gradient"))
    return part_of_recipe(network, REFERENCE_LIMIT * network.batch_size // work)


def choose_judge(network: Network) -> JudgingBackend:
    """By the work of a gradient step. Kinds that a user registered are known to `reference` alone."""
    is_small = network.multiply_accumulates("gradient") <= REFERENCE_LIMIT
    return SMALL if is_small or network.has_own_kinds else LARGE


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
    contender in f32 has to. Once for each build of both: what came of it is kept on disk."""
    recipe = {
        "judges": [[one.name, _resolved(one, {})[1].fingerprint] for one in (judge, SMALL)],
        "network": described.network.to_job(),
    }
    entry = cached("judge", recipe, lambda: {"trial": _tried(judge, described.network)})
    worst = entry.table("trial")
    if not worst["error"] <= TRIAL_TOLERANCE:
        raise NoJudge(
            f"the judge {judge.name} differs from {SMALL.name} on {TRIAL_IMAGES} images: "
            f"{worst['tensor']}: relative error {worst['error']:.2g}, tolerance {TRIAL_TOLERANCE:g}"
        )


def _tried(judge: JudgingBackend, small: Network) -> dict[str, Any]:
    """The tensor in which both differ most, and by how much."""
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
        size = theirs.sizes[name] or 1.0
        errors[f"gradient {name}"] = distance(mine.gradient[name], tensor) / size
    finite = {name: one if math.isfinite(one) else math.inf for name, one in errors.items()}
    worst = max(finite, key=lambda name: finite[name])
    return {"tensor": worst, "error": min(finite[worst], 1e300)}


def _trial_input(network: Network, one: Input, rng: np.random.Generator) -> NDArray[Any]:
    shape = (network.batch_size, *one.shape)
    if one.dtype == "f32":
        return rng.uniform(0, 1, shape).astype(np.float32)
    least = 1 if one.role == "lengths" else network.values_from(one.name)
    return np.resize(np.arange(least, network.values_below(one.name)), shape)
