"""Kinds of layers that a user adds, for backends that have them: what one is, and what it computes.

    import numpy as np
    import timetrial as tt

    @tt.layer_kind
    class ScaledTanh(tt.LayerDefinition):
        kind = "scaled_tanh"
        attributes = (tt.Attribute("scale", "real", 1.7159),)
        formula = "`y = scale tanh(x)`"
        source = "LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998"

        def forward(self, layer, inputs, parameters):
            return layer.attributes["scale"] * np.tanh(inputs[0])

        def backward(self, layer, inputs, parameters, output, gradient):
            scale = layer.attributes["scale"]
            return [gradient * (scale - output**2 / scale)], []

The judge computes with these functions, in double; so a contender that has the kind is proven against them.
`backward` is held against differences of `forward` before anything starts.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from numpy.typing import ArrayLike, NDArray

from timetrial.core import _core
from timetrial.core.errors import NetworkError
from timetrial.errors import InputError

AttributeType = Literal["whole", "real", "flag", "word", "pair", "list"]


@dataclass(frozen=True)
class Attribute:
    """What a layer's table may say. Without a default it has to.

    Types: a `whole` number, a `real` one, a `flag`, a `word`, a `pair` along height and width (whole; layers
    see NAME_h and NAME_w) or a `list` of numbers.
    """

    name: str  # the key
    type: AttributeType  # one of the types
    default: Any = None  # where the table says nothing
    least: float | None = None  # what every number must be at least
    words: tuple[str, ...] = ()  # of the type `word`: what it may be


Doubles = NDArray[Any]  # f64


@dataclass(frozen=True)
class LayerParameter:
    """A tensor of a layer. It is trained, unless it is a state."""

    name: str  # behind the node's: "weight"
    shape: tuple[int, ...]  # whole numbers from 1
    initializer: str = "zeros"  # or `ones`, `glorot_uniform` (of both fans), `he_uniform` (of fan_in)
    fan_in: int = 0  # how many values each output is made of
    fan_out: int = 0  # how many outputs each value is part of
    is_state: bool = False  # training steps change it (`next_states`), inference reads it: a running mean
    decays: bool = True  # whether the weight decay of an optimizer is for it


@dataclass(frozen=True)
class Layer:
    """One layer of a kind. Shapes have the batch first."""

    name: str  # of its node
    attributes: Mapping[str, Any]  # complete, by the types of the kind's attributes
    input_shapes: Sequence[tuple[int, ...]]  # in the order of its inputs
    shape: tuple[int, ...]  # of the output; () until it is known
    training: bool = False  # in a step that has a loss, not in inference
    states: Sequence[Doubles] = ()  # their values before the step


class LayerDefinition:
    """A kind of layers, to be derived from."""

    kind: ClassVar[str] = ""  # its word in a node
    attributes: ClassVar[Sequence[Attribute]] = ()  # what a node of it may say
    several: ClassVar[bool] = False  # it takes two and more inputs, not one
    reads_integers: ClassVar[bool] = False  # inputs may be whole numbers (they come as doubles)
    kinks: ClassVar[Sequence[float]] = ()  # of a kind that treats each value alone: where its slope jumps
    mask_rate: ClassVar[str] = ""  # drops values while it learns: the attribute (`real`) with their share
    couples_batch: ClassVar[bool] = False  # while it learns, samples of a batch depend on each other
    formula: ClassVar[str] = ""  # what it computes, for people
    source: ClassVar[str] = ""  # whence the definition

    def shape(self, layer: Layer) -> Sequence[int]:
        """Of the output. InputError for inputs that do not fit."""
        return layer.input_shapes[0]

    def parameters(self, layer: Layer) -> Sequence[LayerParameter]:
        """In the order in which forward gets them, states last: those are in `layer.states`."""
        return ()

    def multiply_accumulates(self, layer: Layer) -> int:
        """Of the forward pass over the whole batch."""
        return 0

    def integers_below(self, layer: Layer) -> int:
        """With `reads_integers`: whole numbers of the input lie in 0 to this - 1."""
        raise NotImplementedError

    def forward(self, layer: Layer, inputs: Sequence[Doubles], parameters: Sequence[Doubles]) -> ArrayLike:
        """The output."""
        raise NotImplementedError

    def backward(
        self,
        layer: Layer,
        inputs: Sequence[Doubles],
        parameters: Sequence[Doubles],
        output: Doubles,
        gradient: Doubles,
    ) -> tuple[Sequence[ArrayLike], Sequence[ArrayLike]]:
        """Of the loss with respect to each input and to each parameter, from that with respect to the
        output, in training. Of an input of whole numbers, and of a mask, None."""
        raise NotImplementedError

    def next_states(
        self, layer: Layer, inputs: Sequence[Doubles], parameters: Sequence[Doubles]
    ) -> Sequence[ArrayLike]:
        """What the states are behind a training step."""
        raise NotImplementedError


Defined = TypeVar("Defined", bound=type[LayerDefinition])
_REGISTERED: dict[str, LayerDefinition] = {}


def layer_kind(definition: Defined) -> Defined:
    """Makes a kind known to this process, under its word; a decorator of its class. Registered again, the new
    definition counts. NetworkError for a word that a kind of timetrial's own has."""
    own = definition()
    where = f"The layer kind {definition.__qualname__}"
    if not own.kind:
        raise NetworkError(f'{where} has no name: give it one, kind = "...".')
    rules = []
    for one in own.attributes:
        if not isinstance(one, Attribute):
            raise NetworkError(f"{where}: attribute {one!r}; expected a timetrial.Attribute.")
        rules.append((one.name, one.type, one.default, one.least, list(one.words)))
    if own.several and own.kinks:
        raise NetworkError(
            f"{where}: kinks are of a kind that treats each value alone, not of several inputs."
        )
    _core.register_layer_kind(
        own.kind,
        own.several,
        own.reads_integers,
        rules,
        _kinks(where, own.kinks),
        _mask_rate(where, own),
        bool(own.couples_batch),
        own.formula,
        own.source,
        _digest(definition),
        _Functions(own),
    )
    _REGISTERED[own.kind] = own
    return definition


def _kinks(where: str, given: Any) -> list[float]:
    """Checked."""
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in numbers:
        if isinstance(one, bool) or not isinstance(one, (int, float)) or not math.isfinite(one):
            raise NetworkError(f"{where}: kinks are {given!r}; expected a list of numbers.")
    return [float(one) for one in numbers]


def _mask_rate(where: str, own: LayerDefinition) -> str:
    """Checked."""
    rates = [one.name for one in own.attributes if one.type == "real"]
    if not own.mask_rate:
        return ""
    if own.mask_rate not in rates:
        raise NetworkError(
            f"{where}: mask_rate is {own.mask_rate!r}; expected the name of an attribute of the type real"
            + (f": {', '.join(rates)}." if rates else ", and it has none.")
        )
    if own.several or own.kinks:
        words = "takes several inputs" if own.several else "has kinks"
        raise NetworkError(f"{where}: a kind with a mask takes one input beside that; this one {words}.")
    return own.mask_rate


def own_kinds() -> Mapping[str, LayerDefinition]:
    """Those that are registered, by their words."""
    return _REGISTERED


class _Functions:
    """What the core calls: the definition's functions, with errors that name the layer."""

    def __init__(self, definition: LayerDefinition):
        self._definition = definition
        self._types = {one.name: one.type for one in definition.attributes}

    def layer(
        self,
        name: str,
        attributes: dict[str, Any],
        input_shapes: list[list[int]],
        shape: list[int],
        training: bool,
        states: list[Doubles],
    ) -> Layer:
        """Of the core's words."""
        return Layer(
            name,
            {key: self._typed(key, value) for key, value in attributes.items()},
            [tuple(one) for one in input_shapes],
            tuple(shape),
            training,
            states,
        )

    def shape(self, layer: Layer) -> list[int]:
        """As the definition says."""
        given = self._call("shape", layer)
        shape = [int(extent) for extent in given]
        if not shape or any(extent < 1 for extent in shape) or shape[0] != layer.input_shapes[0][0]:
            raise NetworkError(
                f"layer '{layer.name}' ({self._definition.kind}): shape gave {tuple(given)}; expected "
                f"whole numbers from 1, the batch ({layer.input_shapes[0][0]}) first."
            )
        return shape

    def parameters(self, layer: Layer) -> list[tuple[str, list[int], str, int, int, bool, bool]]:
        """As the definition says."""
        found: list[LayerParameter] = []
        for one in self._call("parameters", layer):
            if not isinstance(one, LayerParameter):
                raise NetworkError(
                    f"layer '{layer.name}' ({self._definition.kind}): parameters gave {one!r}; expected "
                    "timetrial.LayerParameter."
                )
            if found and found[-1].is_state and not one.is_state:
                raise NetworkError(
                    f"layer '{layer.name}' ({self._definition.kind}): parameters gave '{one.name}' behind a "
                    "state; expected states last."
                )
            found.append(one)
        return [
            (one.name, list(one.shape), one.initializer, one.fan_in, one.fan_out, one.is_state, one.decays)
            for one in found
        ]

    def multiply_accumulates(self, layer: Layer) -> int:
        """As the definition says."""
        return int(self._call("multiply_accumulates", layer))

    def integers_below(self, layer: Layer) -> int:
        """As the definition says."""
        return int(self._call("integers_below", layer))

    def forward(self, *arguments: Any) -> Any:
        """As the definition says."""
        return self._definition.forward(*arguments)

    def backward(self, *arguments: Any) -> Any:
        """As the definition says."""
        return self._definition.backward(*arguments)

    def next_states(self, *arguments: Any) -> Any:
        """As the definition says."""
        return self._definition.next_states(*arguments)

    def _call(self, what: str, layer: Layer) -> Any:
        try:
            return getattr(self._definition, what)(layer)
        except InputError:
            raise
        except Exception as error:
            raise NetworkError(
                f"layer '{layer.name}' ({self._definition.kind}): {what} failed: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _typed(self, key: str, value: Any) -> Any:
        """Numbers of plug-ins are all doubles."""
        kind = self._types.get(key, "pair")  # NAME_h and NAME_w
        return bool(value) if kind == "flag" else int(value) if kind in ("whole", "pair") else value


def _digest(definition: type[LayerDefinition]) -> str:
    """Another one for another text of the class."""
    try:
        text = inspect.getsource(definition)
    except (OSError, TypeError):  # typed into an interpreter that keeps no text
        text = repr(
            sorted((n, f.__code__.co_code) for n, f in vars(definition).items() if inspect.isfunction(f))
        )
    return hashlib.sha256(text.encode()).hexdigest()[:16]
