"""Decisions in which a contender's gradients differ from what it showed.

Who compiles a training step shows its layers by another program, whose sums may be added up in another
order; and of a batch in which each sample comes several times, one of them is shown, while the sums of
another may be added up in another order. A rectifier's input that lies within rounding of 0, or two rivals of
a maximum that are as near to each other, may then have been decided the other way. Such a decision is shown
here, by the gradients: it lies behind those that differ, and is found by its margin; the judge computes the
batch with it turned (which changes no other value, since those are the contender's), and with that the
contender's gradients must agree within their ordinary tolerance. One after the other is taken that brings the
judge nearest, as long as it gets nearer. Nothing is excused by its size.

Where values are exactly equal, frameworks have conventions: the first of equal maxima gets the gradient, or
the last, or, in Theano's pooling, each of them the whole; relu'(0) is 0, 1/2 or 1. Ties of a layer turn
together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import Doubles, distance, inner, norm
from timetrial.core import layer_traits
from timetrial.proof.judge import TIES, Answer, Judge, Ties
from timetrial.questions.observed import Tensors, sample_count

MARGIN = 2e-5  # of the layer's root mean square: two sums of some thousand terms are apart by up to so much
TINY = 1e-30  # on the other side of an edge
MOST_ASKED = 48  # turns that are tried
MOST_WORK = 2_000_000_000_000  # multiply-accumulates of all of these, for a large judge
FEWEST_ASKED = 8
MOST_BYTES = 2_000_000_000  # of what all of them make different
AT_ONCE = 4  # so many are tried, then so many more
NEARER = 0.98  # what a turn must make of the distance, or it is none

RECTIFIERS = ("relu", "relu6", "leaky_relu")  # at a kink each gives the kink itself
Layer = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """Decisions of a layer that turn together: new values of places of nodes, by node. `is_tie`: of rivals
    that are equal, of which the last wins instead of the first."""

    layer: str
    words: str
    margin: float
    values: Mapping[str, tuple[NDArray[np.int64], Doubles]]
    is_tie: bool = False


@dataclass(frozen=True)
class Found:
    """The judge's gradient with what has turned, and the words of that."""

    gradient: Tensors
    words: list[str] = field(default_factory=list)


class Search:
    """What a contender's gradients ask for. `batch`, `shown`: of the samples that are shown, each of which
    comes so many `times`; `mine`: the contender's gradients, of some parameters."""

    def __init__(
        self,
        judge: Judge,
        layers: Sequence[Layer],
        parameters: Tensors,
        batch: Tensors,
        shown: Tensors,
        answer: Answer,
        mine: Tensors,
        times: int = 1,
    ):
        self._judge, self._layers = judge, layers
        self._parameters, self._batch, self._shown = parameters, batch, shown
        self._answer, self._mine, self._times = answer, mine, times
        self._values = {**answer.activation, **shown}
        self._turns = _turns(layers, self._values)
        self._left = list(self._turns)
        self._possible: list[tuple[Turn, Tensors]] = []

    def found(self, limits: Mapping[str, float], share: float = 1.0) -> Iterator[Found]:
        """What explains the gradients best, tried with more decisions each time, and by each convention at
        ties; whether it does, the ordinary comparison says. `limits`: how far each gradient may be off.
        `share`: of all that may be tried. Asked again it goes on from what has been tried."""
        own, explained = self._answer.gradient, Found(self._answer.gradient)
        if self._possible:
            explained = self._explained(own)
            yield explained
        most = math.ceil(share * _most(self._judge, own, sample_count(self._batch)))
        while self._left and len(self._possible) < most:
            near = _behind_what_is_off(self._layers, self._mine, explained.gradient, limits)
            self._left.sort(key=lambda turn: (turn.layer not in near, turn.margin))
            self._possible += [(turn, self._ask(turn)) for turn in self._left[:AT_ONCE]]
            del self._left[:AT_ONCE]
            explained = self._explained(own)
            yield explained
        for ties in _conventions(self._layers, self._values, self._turns):
            other = self._judge.sized(sample_count(self._batch), ties)
            answer = other.gradient(self._parameters, self._batch, self._shown)
            yield self._explained(ordered(answer.gradient, own), f"the convention {ties} at ties")

    def _ask(self, turn: Turn) -> Tensors:
        there = dict(self._shown)
        for name, (places, new) in turn.values.items():
            there[name] = np.array(self._values[name], np.float64)
            there[name].reshape(-1)[places] = new
        turned = self._judge.gradient(self._parameters, self._batch, there).gradient
        return {name: turned[name] - self._answer.gradient[name] for name in turned}

    def _explained(self, gradient: Tensors, said: str | None = None) -> Found:
        return _explained(gradient, self._mine, self._possible, self._times, said)


def _behind_what_is_off(
    layers: Sequence[Layer], mine: Tensors, gradient: Tensors, limits: Mapping[str, float]
) -> set[str]:
    """The layers behind the last one whose gradients are off and in front of the next one whose gradients are
    not: there something must have been decided otherwise."""
    is_off = [
        [
            distance(mine[one["name"]], gradient[one["name"]]) > limits[one["name"]]
            for one in of
            if one["name"] in mine
        ]
        for of in (layer["parameters"] for layer in layers)
    ]
    last = max((place for place, off in enumerate(is_off) if any(off)), default=len(layers))
    behind = (place for place, off in enumerate(is_off) if place > last and off)
    return {layer["name"] for layer in layers[last + 1 : next(behind, len(layers))]}


def ordered(gradient: Tensors, like: Tensors) -> Tensors:
    """The tensors of another's names, in its order."""
    return {name: gradient[name] for name in like}


def _conventions(
    layers: Sequence[Layer], values: Mapping[str, NDArray[Any]], found: Sequence[Turn]
) -> Iterator[Ties]:
    """Others than the canonical one, which make a difference here: where windows have several maxima that
    are not 0, through which a rectifier in front lets nothing, and where a rectifier reads 0."""
    sources = {layer["name"]: layer["inputs"][0] for layer in layers}
    tied = False
    for turn in found:
        if turn.is_tie:
            source = sources[turn.words.partition(":")[0]]
            tied = tied or bool(np.any(np.ravel(values[source])[turn.values[source][0]]))
    rectified = [sources[layer["name"]] for layer in layers if layer["kind"] in ("relu", "relu6")]
    at_zero = any(not np.all(values[name]) for name in rectified if name in values)
    for ties in TIES[1:]:
        maxima, _, slope = ties.partition("-")
        if (maxima == "first" or tied) and (not slope or at_zero):
            yield ties


def _most(judge: Judge, gradient: Tensors, images: int) -> int:
    fitting = MOST_BYTES // max(1, sum(values.nbytes for values in gradient.values()))
    if not judge.is_large:
        return min(MOST_ASKED, fitting)
    network = judge.network
    work = max(1, network.multiply_accumulates("gradient") * images // network.batch_size)
    return min(MOST_ASKED, max(FEWEST_ASKED, MOST_WORK // work), fitting)


def _turns(layers: Sequence[Layer], values: Mapping[str, NDArray[Any]]) -> list[Turn]:
    """Equal maxima, layer by layer, and the decisions nearest to their edges."""
    found: list[Turn] = []
    for layer in layers:
        traits = layer_traits(layer["kind"])
        if layer["name"] not in values or layer["inputs"][0] not in values:
            continue
        for kink in traits.kinks:
            found += _at_kink(layer, values, kink)
        if traits.picks_largest:
            found += _of_maximum(layer, values)
    return sorted(found, key=lambda one: one.margin)


def _at_kink(layer: Layer, values: Mapping[str, NDArray[Any]], kink: float) -> Iterator[Turn]:
    """A value goes to the other side of the kink. Of rectifiers what comes out goes with it, by which a judge
    may decide as well; and on which side it was the output says: the value itself may be the judge's own, of
    a layer that the contender does not show."""
    name, source = layer["name"], layer["inputs"][0]
    x, y = (np.asarray(values[one], np.float64).ravel() for one in (source, name))
    rms = math.sqrt(inner(x, x) / x.size) or 1.0
    away, is_rectifier = x - kink, layer["kind"] in RECTIFIERS
    above = (y > 0 if kink == 0 else y >= kink) if is_rectifier else away > 0
    beyond = TINY if kink == 0 else 2.0**-50 * abs(kink)
    for place in np.flatnonzero((np.abs(away) <= MARGIN * rms) & (away != 0)):
        there = np.array([place]), np.array([kink + (-beyond if above[place] else beyond)])
        margin = abs(float(away[place])) / rms
        turned = {source: there, name: there} if is_rectifier else {source: there}
        yield Turn(name, f"{name} unit {place}, margin {margin:.1g}", margin, turned)


def _of_maximum(layer: Layer, values: Mapping[str, NDArray[Any]]) -> Iterator[Turn]:
    """A rival rises above the value that has won."""
    source, a = layer["inputs"][0], layer["attributes"]
    x = np.asarray(values[source], np.float64)
    rms = math.sqrt(inner(x, x) / x.size) or 1.0
    windows, places = _windows(x, a)
    winner = windows.argmax(axis=1)
    best = np.take_along_axis(windows, winner[:, None], 1)[:, 0]
    rivals = windows.copy()
    np.put_along_axis(rivals, winner[:, None], -np.inf, axis=1)
    second = rivals.shape[1] - 1 - rivals[:, ::-1].argmax(axis=1)  # of equal ones the last
    gaps = best - np.take_along_axis(rivals, second[:, None], 1)[:, 0]
    above = best + np.maximum(np.abs(best) * 2.0**-50, TINY)
    rising = np.take_along_axis(places, second[:, None], 1)[:, 0]
    tied = np.flatnonzero(gaps == 0)
    if len(tied):
        where, first = np.unique(rising[tied], return_index=True)
        yield Turn(
            layer["name"],
            f"{layer['name']}: {len(tied)} ties",
            0.0,
            {source: (where, above[tied][first])},
            is_tie=True,
        )
    for unit in np.flatnonzero((gaps > 0) & (gaps <= MARGIN * rms)):
        margin = float(gaps[unit]) / rms
        one = {source: (rising[unit : unit + 1], above[unit : unit + 1])}
        yield Turn(layer["name"], f"{layer['name']} unit {unit}, margin {margin:.1g}", margin, one)


def _windows(x: Doubles, a: Mapping[str, Any]) -> tuple[Doubles, NDArray[np.int64]]:
    """What each output's window has, (outputs, kernel), and where: padding is -infinity."""
    height, width = a["padding_h"], a["padding_w"]
    frame = ((0, 0), (0, 0), (height, height), (width, width))
    kernel = a["kernel_h"], a["kernel_w"]

    def view(array: NDArray[Any], outside: float) -> NDArray[Any]:
        padded = np.pad(array, frame, constant_values=outside)
        slid = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
        return slid[:, :, :: a["stride_h"], :: a["stride_w"]].reshape(-1, kernel[0] * kernel[1])

    return view(x, -np.inf), view(np.arange(x.size).reshape(x.shape), -1)


def _explained(
    gradient: Tensors,
    mine: Tensors,
    possible: Sequence[tuple[Turn, Tensors]],
    times: int,
    said: str | None = None,
) -> Found:
    """With those of them turned that the contender's gradient asks for, in as many of the `times` that the
    sample comes as it asks for: a mean over these is linear. `said`: of what `gradient` has already."""
    rest = {name: np.asarray(one, np.float64) - gradient[name] for name, one in mine.items()}
    scale = {name: norm(gradient[name]) or 1.0 for name in rest}

    def product(one: Tensors, other: Tensors) -> float:
        return sum(inner(one[name], other[name]) / scale[name] ** 2 for name in rest)

    moving = [(turn, made) for turn, made in possible if any(np.any(made[name]) for name in rest)]
    sizes = [product(made, made) for _, made in moving]
    corrected, words, left = dict(gradient), [said] if said else [], set(range(len(moving)))
    while left:
        # What |rest - share * difference|^2 is less than |rest|^2, by the share that makes most of it.
        gain, share, number = max(
            _gain(product(rest, moving[one][1]), sizes[one], times, one) for one in left
        )
        if gain < (1 - NEARER**2) * product(rest, rest):
            break
        left.remove(number)
        turn, made = moving[number]
        words.append(turn.words if share == times else f"{turn.words}, {share} of the {times} times")
        for name, difference in made.items():
            corrected[name] = corrected[name] + share / times * difference
            if name in rest:
                rest[name] = rest[name] - share / times * difference
    return Found(corrected, words)


def _gain(along: float, size: float, times: int, number: int) -> tuple[float, int, int]:
    """What is gained at most by a difference, with the share of `times` for that. `along`: the product of
    what is left and the difference; `size`: of the difference with itself."""
    share = min(max(round(times * along / size), 1), times)
    return share / times * (2 * along - share / times * size), share, number
