"""Networks: graphs of layers with shapes, parameters and work known before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from timetrial.core import _core
from timetrial.core.errors import NetworkError
from timetrial.errors import InputError, nearest

Task = Literal["train", "gradient", "forward"]
TASKS: tuple[Task, ...] = ("train", "gradient", "forward")
_PASSES = {
    "train": ("forward", "backward_data", "backward_weights"),
    "gradient": ("forward", "backward_data", "backward_weights"),
    "forward": ("forward",),
}


Role = Literal["input", "target", "mask", "lengths"]


@dataclass(frozen=True)
class Input:
    """A tensor that every batch brings. A `target` is what a loss holds the prediction against."""

    name: str
    shape: tuple[int, ...]  # of one sample: (1, 28, 28); () for one number per sample
    dtype: Literal["f32", "i64"] = "f32"
    role: Role = "input"


def images_and_labels(shape: Sequence[int]) -> list[Input]:
    """The inputs of a network that names images: f32 of that shape, (C, H, W) or (F,), and a class each."""
    return [Input("images", tuple(shape)), Input("labels", (), "i64", "target")]


class Parameter(TypedDict):
    """A tensor of a layer that is trained, or a state that training steps change."""

    name: str  # "<node>.weight", "<node>.bias"
    shape: list[int]
    role: Literal["parameter", "state"]
    decays: bool  # whether the optimizer's weight decay is for it
    initializer: str  # what it is before the first step: random.initial_values
    fan_in: int
    fan_out: int


class _OfSome(TypedDict, total=False):
    dtype: Literal["f32", "i64"]
    role: Role
    definition: str
    integers_below: int


class Node(_OfSome):
    """A node as the job file carries it. Those of the kind `input` have a `dtype` and a `role` too; those of
    a kind that a user registered a digest of its `definition`, and the bound of whole numbers that it reads.
    """

    name: str
    kind: str
    inputs: list[str]
    attributes: dict[str, Any]  # normalized: whole numbers (kernel_h, bias), real ones, words, lists
    shape: list[int]  # of its output, the batch first; [] for a loss
    parameters: list[Parameter]


class Work(TypedDict):
    """Of one layer on the whole batch; keys are `forward`, `backward_data`, `backward_weights`."""

    multiply_accumulates: dict[str, int]
    bytes: dict[str, int]


@dataclass(frozen=True)
class LeastBytes:
    """Bytes on paper."""

    weights: int
    gradients: int
    states: int  # of the optimizer
    activations: int  # of a batch

    @property
    def parameters(self) -> int:
        """Weights, with their gradients and the optimizer's states."""
        return self.weights + self.gradients + self.states

    @property
    def total(self) -> int:
        """All of them."""
        return self.parameters + self.activations


class Network:
    """A directed graph of layers. A wrong one raises NetworkError, which names layers and shapes.

    nodes: tables `{name, kind, inputs, attributes}` in order. A missing `inputs` means the node before (for
    the first one the first input). One loss node has inputs `[prediction, labels]`.
    inputs: what every batch brings, each a node of the kind `input` in front of the others.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]], batch_size: int, inputs: Sequence[Input]) -> None:
        for what, value in (
            ("batch_size", batch_size),
            *((f"an extent of the input '{one.name}'", extent) for one in inputs for extent in one.shape),
        ):
            if not 1 <= value < 2**31:
                raise InputError(f"{what} = {value}; expected a whole number from 1")
        tables: list[object] = [dict(node) if isinstance(node, Mapping) else node for node in nodes]
        for table in tables:
            _check_kind(table)
        specs = [(one.name, one.dtype, list(one.shape), one.role) for one in inputs]
        self._native = _core.Network(tables, batch_size, specs)
        self._nodes = cast(list[Node], self._native.nodes())

    def resized(self, batch_size: int) -> Network:
        """The same layers for batches of another size."""
        layers = [
            {key: node[key] for key in ("name", "kind", "inputs", "attributes")}
            for node in self._nodes
            if node["kind"] != "input"
        ]
        return Network(layers, batch_size, self.inputs)

    @property
    def inputs(self) -> list[Input]:
        """What every batch brings, in the order of a batch's tensors."""
        return [
            Input(node["name"], tuple(node["shape"][1:]), node["dtype"], node["role"])
            for node in self._nodes
            if node["kind"] == "input"
        ]

    @property
    def has_own_kinds(self) -> bool:
        """Whether a layer is of a kind that a user registered."""
        return any("definition" in node for node in self._nodes)

    @property
    def native(self) -> _core.Network:
        """The compiled object, for `Backend`."""
        return self._native

    @property
    def nodes(self) -> list[Node]:
        """All nodes in topological order, inputs first, everything inferred."""
        return self._nodes

    @property
    def batch_size(self) -> int:
        """N, the first extent of every shape."""
        return self._native.batch_size()

    @property
    def parameters(self) -> list[Parameter]:
        """All that are trained, in the order of their nodes, weight before bias."""
        return [one for one in self.initial_tensors if one["role"] == "parameter"]

    @property
    def states(self) -> list[Parameter]:
        """What training steps change besides: running means."""
        return [one for one in self.initial_tensors if one["role"] == "state"]

    @property
    def initial_tensors(self) -> list[Parameter]:
        """Both: all that begins with given values."""
        return [one for node in self._nodes for one in node["parameters"]]

    @property
    def parameter_count(self) -> int:
        """How many numbers are trained."""
        return self._native.parameter_count()

    @property
    def parameter_bytes(self) -> int:
        """Of all parameters in f32."""
        return 4 * self.parameter_count

    @property
    def activation_bytes(self) -> int:
        """Of the outputs of all layers in f32, whole batch."""
        return self._native.activation_bytes()

    def least_bytes(self, task: str = "train", states: int = 0) -> LeastBytes:
        """What a contender that hands out gradients cannot do without: `states` of the optimizer for each
        parameter. To learn it keeps the input of every layer with products until the gradient of its weights;
        otherwise there is at least the largest layer, what it reads and what it gives."""
        weights = self.parameter_bytes
        sizes = {node["name"]: 4 * math.prod(node["shape"]) for node in self._nodes}
        if task == "forward":
            largest = max(
                sizes[node["name"]] + sum(sizes[name] for name in {*node["inputs"]}) for node in self._nodes
            )
            return LeastBytes(weights, 0, 0, largest)
        read = {
            name
            for node in self._nodes
            for name in node["inputs"]
            if self._native.multiply_accumulates(node["name"])["forward"]
        }
        kept = states * weights if task == "train" else 0
        return LeastBytes(weights, weights, kept, sum(sizes[name] for name in read))

    @property
    def output(self) -> str:
        """Name of the node whose output is the prediction: (N, classes), or (N, T, classes)."""
        return self._native.output()

    @property
    def loss(self) -> str:
        """Name of the node that is minimized: a loss, or the sum of several."""
        return self._native.loss()

    @property
    def output_loss(self) -> str:
        """Name of the loss that the prediction is held against its target by."""
        return self._native.output_loss()

    @property
    def couples_batch(self) -> bool:
        """Whether, while it learns, what it makes of one sample depends on the others of the batch: single
        samples, or parts of a batch, then say nothing of the whole."""
        return self._native.couples_batch()

    @property
    def carries_state(self) -> bool:
        """Whether a layer goes on in each batch where it ended in the one before."""
        return any(layer_traits(node["kind"]).carries_state for node in self.nodes)

    def check_training(self) -> None:
        """NetworkError if a layer cannot learn with this batch size, only infer."""
        self._native.check_training()

    @property
    def masks(self) -> dict[str, float]:
        """Of every input that is a mask the share of its values that are 0; the others are what keeps the
        mean of a value, 1 / (1 - share)."""
        found = {}
        for node in self._nodes:
            if key := layer_traits(node["kind"]).mask_rate:
                found[node["inputs"][1]] = float(node["attributes"][key])
        return found

    def values_below(self, name: str) -> int:
        """Whole numbers of an input lie in 0 to this - 1; 0: no layer looks anything up by them."""
        return self._native.values_below(name)

    def values_from(self, name: str) -> int:
        """Where they begin: 0, or -1 where that says of a place that it does not count."""
        return self._native.values_from(name)

    def multiply_accumulates(self, task: str = "train", layer: str | None = None) -> int:
        """Multiply-accumulates of one step of a task on the whole batch; of one layer if named.

        `train` is forward + gradients of the weights + gradients of the data, these only where
        something before the layer has parameters. What goes back through the states of a recurrent layer is
        part of the gradients of its weights. Products with padded zeros count, additions of biases do not.
        """
        return sum(
            self._native.multiply_accumulates(name)[p] for name in self._names(layer) for p in _passes(task)
        )

    def bytes(self, task: str = "train", layer: str | None = None) -> int:
        """The least memory traffic of one step: each tensor that a pass of a layer reads or writes, once."""
        return sum(self._native.bytes(name)[p] for name in self._names(layer) for p in _passes(task))

    def work(self, layer: str) -> Work:
        """Multiply-accumulates and least bytes of a layer, by pass: what a profile divides by times.

        The first layer with parameters has no `backward_data`: nothing before it learns from that gradient.
        """
        return Work(
            multiply_accumulates=self._native.multiply_accumulates(layer), bytes=self._native.bytes(layer)
        )

    def to_job(self) -> dict[str, Any]:
        """The "network" of a job file (processes/PROTOCOL.md), without files of parameters."""
        found: dict[str, Any] = {"output": self.output, "loss": self.loss, "nodes": self._native.nodes()}
        if self.output_loss != self.loss:
            found["output_loss"] = self.output_loss
        return found

    def _names(self, layer: str | None) -> list[str]:
        return [node["name"] for node in self._nodes] if layer is None else [layer]


def _passes(task: str) -> tuple[str, ...]:
    if task not in _PASSES:
        raise InputError(f"unknown task '{task}'.{nearest(task, TASKS)}")
    return _PASSES[task]


# Words of frameworks for kinds that have another name here.
_FOREIGN = {
    "linear": "dense", "fullyconnected": "dense", "batchnorm2d": "batch_norm",
    "batchnormalization": "batch_norm", "crossentropyloss": "softmax_cross_entropy",
}  # fmt: skip


def _check_kind(node: object) -> None:
    """NetworkError: the kind has a framework's spelling (`Conv2d`, `MaxPooling2D`, `linear`)."""
    kind = node.get("kind") if isinstance(node, dict) else None
    if not isinstance(kind, str) or _core.layer_traits(kind) is not None:
        return
    plain = kind.casefold().replace("_", "").replace("pooling", "pool")
    meant = {**{one.name.replace("_", ""): one.name for one in layer_kinds()}, **_FOREIGN}.get(plain)
    if meant is not None:
        name = cast(dict[str, object], node).get("name")
        raise NetworkError(f"layer '{name}' has the unknown kind '{kind}'. Did you mean '{meant}'?")


@dataclass(frozen=True)
class LayerKind:
    """What a node can be. Words for people; names in `code`."""

    name: str
    attributes: str  # with their defaults
    formula: str  # what it computes
    source: str  # whence the definition


@dataclass(frozen=True)
class LayerTraits:
    """What one has to know of a kind who judges its numbers."""

    kinks: tuple[float, ...] = ()  # inputs at which the derivative jumps, of one that treats each value alone
    picks_largest: bool = False  # in each window
    moves_nothing: bool = False  # its output is its input under another shape
    keeps_places: bool = False  # each value stands where the input's stood that it is made of
    mask_rate: str = ""  # of one that drops values while it learns: the attribute with their share
    couples_batch: bool = False  # while it learns, each sample depends on the others of the batch
    carries_state: bool = False  # its states are of the samples of a batch, which go on in the next one


def layer_traits(kind: str) -> LayerTraits:
    """Of a kind of the core, or of one's own; of one that this process does not know: none."""
    found = _core.layer_traits(kind)
    return LayerTraits() if found is None else LayerTraits(tuple(found[0]), *found[1:])


def recurs(parameters: Iterable[str]) -> bool:
    """Whether a network with parameters of these names has a layer that goes on from its own last state."""
    return any(name.endswith("recurrent_weight") for name in parameters)


def layer_kinds() -> list[LayerKind]:
    """The kinds a node can have."""
    return [LayerKind(*words) for words in _core.layer_kinds()]
