"""Decisions that rounding turned, looked for with the whole of a batch's different images.

Behind a normalization over the batch no image can be computed alone: a decision that turned in one image
changes the gradients of all. And of a network with millions of weights not every decision's difference fits
into memory. In both a decision that turned still changes no value, being within rounding of its edge, and
nothing of the layers behind it. So they are looked for from the loss backward: what a layer's gradient is off
by was turned between it and the next layers that learn, or farther on, and that is known by then.

Those decisions are turned by the judge for a look at what they do to that layer: one of each channel at once,
since it shows in its own row of the weights alone, which is checked; otherwise one by one. The value that a
turned decision lets through stays what it was: among a million others behind it one lies nearer to its edge
than a nudge is long. Row by row those stay that bring the judge nearest to the contender. What counts is not
that sum: the judge computes the batch again with all of them turned, and goes on from there to the layer
before. Equal rivals turn together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.rounding import Doubt, margins_of
from timetrial.agreement.rows import is_apart, off_rows, standing_out
from timetrial.agreement.shares import Shares, along
from timetrial.agreement.sizes import norm, size_of
from timetrial.agreement.statistics import PLACES
from timetrial.core import layer_traits
from timetrial.proof.flips import NEARER, TURNED_MARGIN, Edge, edges_of, nudges_of
from timetrial.proof.parts import evenly
from timetrial.questions.observed import Tensors, rows_of

if TYPE_CHECKING:
    from timetrial.proof.judge import Judge, Ties, Witness

# Of one batch, how often the judge is asked: by the multiply-accumulates of all its answers.
MOST_WORK = {True: 1_200_000_000_000, False: 50_000_000_000}  # of a judge that is large, and of `reference`
FEWEST_ASKED = 12
CLEARLY = 0.5  # what a turn must make of the distance of a row where a layer as a whole is near enough

Layers = tuple[str, ...]
Stage = Literal["new", "all", "tied"]


@dataclass(frozen=True, eq=False)
class _Chance:
    """Decisions that turn together, and how much of their difference may have: an image that comes several
    times need not turn everywhere. `channel`: of the place of a single one; below 0: equal rivals."""

    edges: tuple[Edge, ...]
    shares: tuple[float, ...]
    channel: int = -1


@dataclass(frozen=True)
class _Look:
    """What a chance makes different in these rows of a layer's gradients, each over its own size."""

    rows: slice
    values: Tensors


def explain_coupled(
    judge: Judge,
    parameters: Tensors,
    batch: Tensors,
    mine: Tensors,
    tolerance: float,
    ties: Ties = "first",
    doubt: Doubt | None = None,
    *,
    whole: bool = False,
) -> tuple[Tensors, list[str]]:
    """The judge's gradient with those decisions turned that a contender's (`mine`) asks for, and the words of
    each; without words nothing was found. Whether that explains it, the ordinary comparison says. `doubt`: of
    the same batch at the same parameters, what rounding makes of each, which no decision is searched for."""
    first, place = evenly(batch, whole=whole)
    images = rows_of(batch, first)
    if ties != "first" and not _may_tie(judge.witness(images=len(first)), parameters, images):
        return {}, []
    witness = judge.witness(ties, images=len(first))
    again = parameters if whole else {}
    search = _Search(witness, parameters, images, len(place) // len(first), again, doubt or Doubt())
    for together in reversed(search.groups):
        search.settle(together, mine, tolerance)
    return search.gradient, [search.words_of(one, first) for one in search.turned]


def _may_tie(witness: Witness, parameters: Tensors, images: Tensors) -> bool:
    """Whether taking equal maxima otherwise gives other gradients. A large judge is asked beforehand, since
    `reference`, who alone can take them otherwise, needs up to minutes for each of its answers. Who adds up
    in f32 may find rivals equal that are some last places apart. Through a maximum of 0 behind a rectifier
    goes no gradient."""
    picking = [node for node in witness.nodes if layer_traits(node["kind"]).picks_largest]
    if not picking or not witness.is_large:
        return bool(picking)
    witness.load(parameters)
    activation = witness.gradient(images, {}).activation
    cut_off = {node["name"] for node in witness.nodes if node["kind"] in ("relu", "relu6")}
    for edge in edges_of(picking, activation, limit=TURNED_MARGIN, ties="first"):
        largest = abs(float(activation[edge.node].reshape(-1)[edge.unit]))
        gap = edge.nudge + edge.back  # a nudge leads a little beyond the edge
        if gap <= PLACES * largest and not (edge.source in cut_off and largest == 0):
            return True
    return False


class _Search:
    """`images`: all different, each `times` in the batch. `again`: loaded in front of every gradient."""

    def __init__(
        self,
        witness: Witness,
        parameters: Tensors,
        images: Tensors,
        times: int,
        again: Tensors,
        doubt: Doubt,
    ):
        self._witness, self._images, self._again = witness, images, again
        self._nodes = {node["name"]: node for node in witness.nodes}
        self._owners = _owners(witness.nodes)
        self.groups = _together(witness.nodes)
        self._asks_left = max(FEWEST_ASKED, MOST_WORK[witness.is_large] // max(1, witness.work))
        self._nudges: Tensors = {}  # of what has turned wherever its image comes
        self._parts: Tensors = {}  # what those make different that have not everywhere
        self._mixed: set[Layers] = set()  # those whose rows are not what a channel decides
        self._settled: set[str] = set()  # layers
        self._doubt = doubt
        # Whoever takes ties in another way answers otherwise.
        known = doubt if witness.ties == "first" else Doubt()
        plain, margins = known.answered, known.margins
        if plain is None:
            witness.load(parameters)
            plain = witness.gradient(images, {})
            margins = margins_of(witness, parameters, images, plain.activation, times)
        self._now: Tensors = plain.gradient
        witness.load(parameters)
        self._left = list(self._chances(plain.activation, times, margins))
        self.turned: list[_Chance] = []

    @property
    def gradient(self) -> Tensors:
        """With all that has turned."""
        if not self._parts:
            return self._now
        return {name: values + self._parts[name] for name, values in self._now.items()}

    def settle(self, layers: Layers, mine: Tensors, tolerance: float) -> None:
        """Turns decisions between layers that go together and the next ones that learn, as long as their
        gradients differ from a contender's by more than rounding does and that brings them nearer; and
        besides, in rows that stand out among the others, those that explain most of such a row: they would
        be seen in all layers before."""
        scale = {name: size_of(self._now, name) or 1.0 for name in mine if name.partition(".")[0] in layers}
        doubted = {name: self._doubt.of.get(("gradient", name), 0.0) for name in scale}
        limits = {name: max(tolerance, doubted[name] / size) for name, size in scale.items()}
        looks: dict[_Chance, _Look] = {}
        # Around a sum a decision is behind the layers of all blocks before it. It shows best in the nearest,
        # so those that were near others come later; and equal rivals, which hardly ever matter, at last.
        stages: list[Stage] = ["new", "all", "tied"]
        while stages:
            rest = {name: (mine[name] - self._now[name]) / size for name, size in scale.items()}
            for name in scale if self._parts else ():
                rest[name] -= self._parts[name] / scale[name]
            is_near = all(norm(values) <= limits[name] for name, values in rest.items())
            off = None if layers in self._mixed or stages[0] == "tied" else off_rows(rest)
            if is_near:
                off = None if off is None else standing_out(rest, max(limits.values()))
                if off is None or not np.any(off):
                    break
            self._look(self._candidates(layers, stages[0]), layers, rest, scale, looks, off)
            chosen = _nearest(rest, looks, CLEARLY if is_near else NEARER)
            if chosen:
                self._turn(chosen)
            elif self._asks_left <= 0:
                break
            else:
                del stages[0]
        self._settled.update(layers)

    def _candidates(self, layers: Layers, stage: Stage) -> list[_Chance]:
        """Those behind these layers that may have turned, by what is looked at now."""
        found = []
        for one in self._left:
            owners = self._owners[one.edges[0].source]
            is_new = stage != "new" or owners.isdisjoint(self._settled)
            if is_new and (one.channel < 0) == (stage == "tied") and not owners.isdisjoint(layers):
                found.append(one)
        return found

    def words_of(self, chance: _Chance, numbers: NDArray[Any]) -> str:
        """As a record has them."""
        edge = chance.edges[0]
        if chance.channel < 0:
            return f"{edge.node}: {len(chance.edges)} ties"
        shape = self._nodes[edge.source]["shape"]
        image = numbers[edge.place // math.prod(shape[1:])]
        tie = ", a tie in f32" if edge.is_tied else ""
        return f"{edge.node} unit {edge.unit} of the batch (image {image}), margin {edge.margin:.1g}{tie}"

    def _chances(
        self, activation: Mapping[str, NDArray[Any]], times: int, margins: Mapping[str, float]
    ) -> Iterator[_Chance]:
        tied = defaultdict(list)
        shares = tuple((count + 1) / times for count in range(times))
        edges: list[Edge] = []
        for node in self._witness.nodes:
            limit = max([TURNED_MARGIN, *(margins.get(source, 0.0) for source in node["inputs"])])
            edges += edges_of([node], activation, limit=limit, ties=self._witness.ties)
        for edge in sorted(edges, key=lambda edge: edge.margin):
            shape = self._nodes[edge.source]["shape"]
            if edge.margin == 0:
                tied[edge.node].append(edge)
            else:
                yield _Chance((edge,), shares, edge.place // math.prod(shape[2:]) % shape[1])
        for those in tied.values():
            yield _Chance(tuple(those), (0.5, 1.0))

    def _look(
        self,
        candidates: Sequence[_Chance],
        layers: Layers,
        rest: Tensors,
        scale: Mapping[str, float],
        looks: dict[_Chance, _Look],
        off: NDArray[np.bool_] | None,
    ) -> None:
        """At those of the candidates that nobody has looked at yet, where the layers' rows are `off`."""
        new = [
            one
            for one in candidates
            if one not in looks and (off is None or (one.channel < len(off) and off[one.channel]))
        ]
        while new and self._asks_left > 0:
            together = new[:1] if off is None else list({one.channel: one for one in reversed(new)}.values())
            made = {
                name: values / scale[name] for name, values in self._difference(together, list(rest)).items()
            }
            if off is not None and not is_apart(made, [one.channel for one in together]):
                self._mixed.add(layers)
                return self._look(candidates, layers, rest, scale, looks, None)
            for one in together:
                new.remove(one)
                rows = slice(None) if off is None else slice(one.channel, one.channel + 1)
                looks[one] = _Look(rows, {name: values[rows] for name, values in made.items()})

    def _difference(self, chances: Sequence[_Chance], names: Sequence[str]) -> Tensors:
        self._asks_left -= 1
        nudges = self._with(chances)
        turned = self._gradient(nudges)
        return {name: turned[name] - self._now[name] for name in names}

    def _turn(self, chosen: Sequence[tuple[_Chance, float]]) -> None:
        for share in sorted({share for _, share in chosen}, reverse=True):
            those = [one for one, its in chosen if its == share]
            self._left = [one for one in self._left if one not in those]
            self.turned += those
            if share == 1:
                self._asks_left -= 1
                self._nudges = self._with(those)
                self._now = self._gradient(self._nudges)
            else:
                for name, values in self._difference(those, list(self._now)).items():
                    self._parts[name] = self._parts.get(name, 0.0) + share * values

    def _gradient(self, nudges: Tensors) -> Tensors:
        self._witness.load(self._again)
        return self._witness.gradient(self._images, nudges, activations=False).gradient

    def _with(self, chances: Sequence[_Chance]) -> Tensors:
        edges = (edge for one in chances for edge in one.edges)
        return nudges_of(edges, self._witness.nodes, self._nudges)


def _nearest(rest: Tensors, looks: dict[_Chance, _Look], nearer: float) -> list[tuple[_Chance, float]]:
    """Those that bring the judge `nearer` to what it is off by, each with how much of it turned. With each
    that is found (the nearest first) those of its rows are fitted anew, all together: two that turned and
    share a row look like half of one and half of the other to whoever takes them one by one. What is found is
    taken out of the looks."""
    fits: dict[tuple[Any, Any], Shares[_Chance]] = {}
    while True:
        nearest, found = 0.0, None
        for one, look in looks.items():
            own = {name: rest[name][look.rows] for name in look.values}
            towards, size, left = along(look.values, own), along(look.values, look.values), along(own, own)
            for share in one.shares:
                gain = share * (2 * towards - share * size)
                if gain > max(nearest, (1 - nearer**2) * left):
                    nearest, found = gain, one
        if found is None:
            return [pair for fit in fits.values() for pair in _rounded(fit.of)]
        look = looks.pop(found)
        own = {name: rest[name][look.rows] for name in look.values}
        whole = {name: values.copy() for name, values in own.items()}
        fit = fits.setdefault((look.rows.start, look.rows.stop), Shares(whole))
        fit.add(found, look.values)
        for name, values in fit.rest().items():
            own[name][...] = values


def _rounded(fitted: Mapping[_Chance, float]) -> Iterator[tuple[_Chance, float]]:
    """To shares that there are, without those that are none."""
    for chance, share in fitted.items():
        nearest = min((0.0, *chance.shares), key=lambda one: abs(one - share))
        if nearest > 0:
            yield chance, nearest


def _is_trained(node: Mapping[str, Any]) -> bool:
    return any(one["role"] == "parameter" for one in node["parameters"])


def _owners(nodes: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Of each node the layers that learn before it, itself if it is one, as far as the nearest with a matrix:
    what moves a gradient within a channel shows in no vector."""
    owners: dict[str, set[str]] = {}
    for node in nodes:
        own = {node["name"]} if _is_trained(node) else set()
        has_matrix = any(len(one["shape"]) > 1 for one in node["parameters"])
        before = set().union(*(owners[name] for name in node["inputs"])) if node["inputs"] else set()
        owners[node["name"]] = own if has_matrix else own | before
    return owners


def _together(nodes: Sequence[Mapping[str, Any]]) -> list[Layers]:
    """Layers that learn, in order: each with the one right behind it that has only vectors. Two numbers of a
    channel are explained by nearly any decision in it; a row of a matrix besides, by the right ones alone."""
    found: dict[str, Layers] = {}
    for node in nodes:
        if not _is_trained(node):
            continue
        before = found.get(node["inputs"][0], ())
        is_vector = all(len(one["shape"]) == 1 for one in node["parameters"])
        if is_vector and len(before) == 1 and len(node["inputs"]) == 1:
            del found[before[0]]
            found[node["name"]] = (*before, node["name"])
        else:
            found[node["name"]] = (node["name"],)
    return list(found.values())
