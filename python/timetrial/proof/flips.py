"""Decisions that rounding may turn, and the proof that it was one of them.

A relu's input may be so close to 0, or two rivals of a maximum so close together, that f32 decides otherwise
than the judge does in f64. The gradient of that image then differs a little, legally. Whoever claims this
must show it: the unit is found, with its margin; the judge computes that one image again with the decision
turned (its input nudged across the edge, by hardly more than the margin); and with that the contender's
numbers must agree within the ordinary tolerance. Which of the found units were turned is searched one by one:
always the one that brings the judge nearest to the contender, as long as it gets nearer. (A least-squares fit
over all of them fails: neighbors in an image turn almost the same, and its coefficients are then anything.)
Nothing is excused by its size.

A margin of exactly 0 is a tie: many of them act alike, by the convention of whoever computes (the first
maximum or the last; relu'(0) = 0, 1/2 or 1). The ties of a layer turn together, with one coefficient of 0,
1/2 or 1. One convention more is no derivative: Theano's pooling gives every one of several equal maxima the
whole gradient. Who is explained by it is judged by it throughout: all ties of all poolings at once, and of
rivals that lie within rounding either one or both may have won. What is closer than f32 can tell (where a
window has three zeros and next to nothing) is a tie for whoever rounds: hundreds of a batch turn together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import inner, norm
from timetrial.core import layer_traits
from timetrial.proof.parts import different
from timetrial.questions.observed import Tensors, rows_of, sample_count

if TYPE_CHECKING:
    from timetrial.proof.judge import Judge, Ties

CLEAR_MARGIN = 3e-6  # of the layer's rms: images below it are left out of the proof's batches
LAST_PLACE = 2.0**-24  # of f32, of a number: at least
BEYOND = 1e-9  # of the layer's rms: how far behind the edge a nudge leads
TURNED_MARGIN = 1e-5  # what rounding may turn: sums of some thousand terms are off by up to so much
MOST_TURNED = 256  # units that are looked at, the closest first
MOST_BYTES = 1_000_000_000  # of what all of them make different: of a larger network fewer are looked at,
FEWEST_TURNED = 64  # and no fewer
# The closest of them explain most of what is turned: so many are tried, then so many more, at last all.
MORE_TURNED = (8, 8, 16, 32, 64, None)
NEARER = 0.98  # what a turn must make of the distance, or it is none

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Edge:
    """A decision that lies close to its edge. `unit`: its place in the output of `node`, the layer that
    decides; `nudge`: what turns it, added to `place` of the output of `source`; `back`: what makes up for
    that, added to `unit` of `node`'s own output. Layers behind then see the value that they saw before, and
    none of their decisions, however near its edge, turns along."""

    node: str
    unit: int
    margin: float  # of the layer's rms
    source: str
    place: int
    nudge: float
    back: float = 0.0
    is_tied: bool = False  # the nudge leads to the edge, and not across it
    is_equal: bool = False  # in f32: the margin is less than half of a last place


@dataclass(frozen=True)
class Turn:
    """Edges that turn together, with the difference that makes to the gradients of the whole batch."""

    words: str
    shares: tuple[float, ...]  # of the difference: how much of it may have turned
    difference: Tensors = field(repr=False)


def edges_of(
    nodes: Sequence[Mapping[str, Any]],
    activation: Mapping[str, NDArray[Any]],
    limit: float = TURNED_MARGIN,
    ties: Ties = "first",
) -> Iterator[Edge]:
    """The edges of a batch, by its activations in double precision, for whoever takes ties this way: where
    all of several maxima get the gradient, there is nothing to choose between them."""
    for node in nodes:
        traits = layer_traits(node["kind"])
        if not (traits.kinks or traits.picks_largest) or node["inputs"][0] not in activation:
            continue
        source = node["inputs"][0]
        values = activation[source]
        rms = float(np.sqrt(np.mean(values**2))) or 1.0  # of a layer that is all 0 every decision is a tie
        for kink in traits.kinks:
            heights = activation[node["name"]].ravel() - kink
            yield from _kink_edges(node["name"], source, values.ravel() - kink, heights, rms, limit)
        if traits.picks_largest:
            windows = math.prod(node["shape"][1:])
            for image, one in enumerate(values):
                begin = image * windows, image * one.size
                yield from _pooling_edges(node, source, one, begin, rms, limit, ties)


def _kink_edges(
    name: str, source: str, values: Doubles, heights: Doubles, rms: float, limit: float
) -> Iterator[Edge]:
    """`values`: how far from the kink; `heights`: the same of what comes out. A rectifier leaves its kinks
    where they are, so that is what a nudge to the kink takes away; of other kinds nobody knows."""
    beyond = BEYOND * rms
    for unit in np.flatnonzero(np.abs(values) <= limit * rms):
        value, height = float(values[unit]), float(heights[unit])
        nudge = -value - beyond if value > 0 else -value + beyond
        back = height if abs(height) <= abs(value) else 0.0
        yield Edge(name, int(unit), abs(value) / rms, source, int(unit), nudge, back)


def _pooling_edges(
    node: Mapping[str, Any],
    source: str,
    values: Doubles,
    begin: tuple[int, int],
    rms: float,
    limit: float,
    ties: Ties,
) -> Iterator[Edge]:
    """`values`: of one image; `begin`: of it in the batch, in units and in places."""
    a = node["attributes"]
    height, width = a["padding_h"], a["padding_w"]
    places = np.arange(values.size).reshape(values.shape)
    frame = ((0, 0), (height, height), (width, width))
    windows, found = (
        np.lib.stride_tricks.sliding_window_view(
            np.pad(array, frame, constant_values=outside), (a["kernel_h"], a["kernel_w"]), axis=(1, 2)
        )[:, :: a["stride_h"], :: a["stride_w"]].reshape(-1, a["kernel_h"] * a["kernel_w"])
        for array, outside in ((values, -np.inf), (places, -1))
    )
    best = windows.max(axis=1)
    winner = windows.argmax(axis=1)
    rivals = windows.copy()
    np.put_along_axis(rivals, winner[:, None], -np.inf, axis=1)
    gaps = best[:, None] - rivals
    if ties == "first":
        # Of equal rivals the last: what a framework does that keeps the last maximum.
        second = rivals.shape[1] - 1 - rivals[:, ::-1].argmax(axis=1)
        close = [(unit, second[unit]) for unit in np.flatnonzero(gaps.min(axis=1) <= limit * rms)]
    else:  # each of them, in a tie of others too
        close = list(zip(*np.nonzero((gaps > 0) & (gaps <= limit * rms)), strict=True))
    for unit, rival in close:
        missing = float(gaps[unit, rival])
        is_equal = missing < LAST_PLACE / 2 * abs(float(best[unit]))
        edge = Edge(
            node["name"],
            begin[0] + int(unit),
            missing / rms,
            source,
            begin[1] + int(found[unit, rival]),
            missing + BEYOND * rms,
            -BEYOND * rms,
            is_equal=is_equal,
        )
        yield edge
        if ties == "all":
            yield replace(edge, nudge=missing, back=0.0, is_tied=True)


def nudges_of(
    edges: Iterable[Edge], nodes: Sequence[Mapping[str, Any]], nudges: Mapping[str, Doubles] | None = None
) -> Tensors:
    """What turns these, by node, besides `nudges` that are there already."""
    found = {name: values.copy() for name, values in (nudges or {}).items()}
    shapes = {node["name"]: node["shape"] for node in nodes}
    for edge in edges:
        for name, place, amount in (
            (edge.source, edge.place, edge.nudge),
            (edge.node, edge.unit, edge.back),
        ):
            if amount:
                found.setdefault(name, np.zeros(shapes[name])).reshape(-1)[place] += amount
    return found


def fits(parameters: Tensors) -> bool:
    """Whether what enough of them make different fits into memory; otherwise they are looked for one after
    the other (coupled.py)."""
    return FEWEST_TURNED * sum(8 * tensor.size for tensor in parameters.values()) <= MOST_BYTES


def turns(judge: Judge, parameters: Tensors, batch: Tensors, ties: Ties = "first") -> Iterator[Turn]:
    """Everything that rounding might turn in a batch, for whoever takes ties this way: the closest first, and
    ties behind. What each makes different is computed when it is asked for."""
    first, place = different(batch)
    times = dict(zip(first.tolist(), np.bincount(place).tolist(), strict=True))
    every = judge.witness(ties, images=len(first))
    every.load(parameters)
    shown = every.gradient(rows_of(batch, first), {}).activation
    witness = judge.witness(ties)
    witness.load(parameters)
    close: list[tuple[int, Edge]] = []
    tied: dict[str, list[tuple[int, list[Edge]]]] = {}
    for row, number in enumerate(times):
        of_image = {name: values[row : row + 1] for name, values in shown.items()}
        edges = list(edges_of(witness.nodes, of_image, ties=ties))
        close += [(number, edge) for edge in edges if edge.margin > 0]
        for node in {edge.node for edge in edges if edge.margin == 0}:
            equal = [edge for edge in edges if edge.node == node and edge.margin == 0]
            tied.setdefault(node, []).append((number, equal))
    # Of those that are none in f32 each by itself comes behind all others.
    close.sort(key=lambda pair: (ties == "all" and pair[1].is_equal, pair[1].margin))
    most = min(MOST_TURNED, MOST_BYTES // max(1, sum(8 * tensor.size for tensor in parameters.values())))

    @functools.cache
    def plain(number: int) -> Tensors:
        return witness.gradient(rows_of(batch, [number]), {}, activations=False).gradient

    def difference(number: int, edges: Sequence[Edge]) -> Tensors:
        nudges, own = nudges_of(edges, witness.nodes), plain(number)
        turned = witness.gradient(rows_of(batch, [number]), nudges, activations=False).gradient
        share = times[number] / sample_count(batch)
        return {name: share * (turned[name] - own[name]) for name in turned}

    alike = [(number, edge) for number, edge in close if edge.is_tied and edge.is_equal]
    if alike:
        windows = len({(number, edge.node, edge.unit) for number, edge in alike})
        yield Turn(f"{windows} ties in f32", (1.0,), _added(_by_image(alike), difference))
    for number, edge in close[:most]:
        yield Turn(
            f"{edge.node} unit {edge.unit} of image {number}, margin {edge.margin:.1g}"
            + (", a tie in f32" if edge.is_tied else ""),
            # An image that comes several times need not turn everywhere.
            tuple((count + 1) / times[number] for count in range(times[number])),
            difference(number, [edge]),
        )
    for node, images_with in tied.items():
        count = sum(len(edges) for _, edges in images_with)
        yield Turn(f"{node}: {count} ties", (0.5, 1.0), _added(images_with, difference))


def _by_image(edges: Iterable[tuple[int, Edge]]) -> list[tuple[int, list[Edge]]]:
    """One nudge for each place: where windows overlap, that of the first."""
    found: dict[int, dict[tuple[str, int], Edge]] = {}
    for number, edge in edges:
        found.setdefault(number, {}).setdefault((edge.source, edge.place), edge)
    return [(number, [*each.values()]) for number, each in found.items()]


def _added(
    images_with: Iterable[tuple[int, list[Edge]]], difference: Callable[[int, Sequence[Edge]], Tensors]
) -> Tensors:
    """What they make different together."""
    total: Tensors = {}
    for part in (difference(number, edges) for number, edges in images_with):
        total.update({name: total.get(name, 0.0) + values for name, values in part.items()})
    return total


def every_tie(judge: Judge, parameters: Tensors, batch: Tensors) -> Turn:
    """What it makes of a batch's gradients that all of several equal maxima get the whole of it."""
    first, place = different(batch)
    shares = np.bincount(place) / sample_count(batch)
    witnesses = judge.witness("first"), judge.witness("all")
    for witness in witnesses:
        witness.load(parameters)
    total: Tensors = {name: np.zeros(values.shape) for name, values in parameters.items()}
    count = 0
    for number, share in zip(first.tolist(), shares.tolist(), strict=True):
        one, every = (witness.gradient(rows_of(batch, [number]), {}) for witness in witnesses)
        for name, values in total.items():
            values += share * (every.gradient[name] - one.gradient[name])
        pooled = [node for node in witnesses[0].nodes if layer_traits(node["kind"]).picks_largest]
        count += sum(edge.margin == 0 for edge in edges_of(pooled, one.activation, 0.0))
    return Turn(f"{count} ties of maxima, each value of them", (1.0,), total)


def explain(residual: Tensors, gradient: Tensors, possible: Sequence[Turn]) -> tuple[Tensors, list[str]]:
    """The judge's gradient with those decisions turned that a contender's `residual` (its gradient minus the
    judge's) asks for, and the words of each. Whether that explains it, the ordinary comparison says."""
    moving = [turn for turn in possible if any(np.any(turn.difference[name]) for name in residual)]
    if not moving:
        return gradient, []
    scale = {name: norm(gradient[name]) or 1.0 for name in residual}

    def product(mine: Tensors, theirs: Tensors) -> float:
        return sum(inner(mine[name], theirs[name]) / scale[name] ** 2 for name in residual)

    # Whole tensors: a decision may show in the 25 weights of one filter, and nowhere else.
    rest = {name: np.asarray(values, np.float64) for name, values in residual.items()}
    sizes = [product(turn.difference, turn.difference) for turn in moving]
    corrected, words = dict(gradient), []
    left = set(range(len(moving)))
    while left:
        # What |rest - share * difference|^2 is less than |rest|^2.
        along = {number: product(rest, moving[number].difference) for number in left}
        gain, number, share = max(
            (share * (2 * along[number] - share * sizes[number]), number, share)
            for number in left
            for share in moving[number].shares
        )
        if gain < (1 - NEARER**2) * product(rest, rest):
            break
        left.remove(number)
        words.append(moving[number].words)
        for name, difference in moving[number].difference.items():
            corrected[name] = corrected[name] + share * difference
            if name in rest:
                rest[name] = rest[name] - share * difference
    return corrected, words
