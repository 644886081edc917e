"""What rounding makes of a network whose images depend on each other (batch normalization), or that goes on
from its own last state for hundreds of steps.

A small variance magnifies every last place, in all images; no decision explains that (proof/coupled.py). So
does a sum of samples that cancels, of states that themselves are hundreds of steps from the first. So
the judge is asked again with its parameters off, in both directions, and a contender may differ from it by
twice what some last places make of the judge's own numbers in this very step. In double precision it is asked
with a small part of that, times as much, and believed in the direction in which it moves less: so no
decision turns on the way. What turned must be shown, and is no part of a doubt.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import inner, norm
from timetrial.agreement.statistics import PLACES, Arrays, normalizations, states_off, sum_places, weights_off
from timetrial.core import layer_traits, recurs

FINER = 2.0**-16  # by so much less the judge is shifted: of thousands on an edge hardly one turns
PAIRS = 2
TIMES = 2.0
MANY = 16_000_000  # decisions of a batch: among more of them the search may miss some
# Of a gradient, at the least. A normalization takes its mean away, and what lies along its own values; behind
# a mean over the image that is most of it, and what is left keeps the rounding of the whole.
LEAST = 5e-4
WORDS = "within what rounding makes of the judge's own numbers"


@dataclass
class Doubt:
    """Of a step, absolute: of the loss, and of each tensor by kind and name, in the Euclidean norm. `least`:
    of a gradient's own size. `turning`: with what comes of decisions that last places turn. Without: what the
    witness `answered`, and how far the same last places moved what decides: `margins`, as margins_of() has
    them, hardly larger for the values that go into a normalization, which are off besides."""

    loss: float = 0.0
    least: float = 0.0
    turning: bool = False
    of: dict[tuple[str, str], float] = field(default_factory=dict)
    answered: Any = field(default=None, repr=False, compare=False)
    margins: dict[str, float] = field(default_factory=dict)

    def allowed(self, kind: str, name: str) -> float:
        """By how much a contender's tensor may differ."""
        return TIMES * self.of.get((kind, name), 0.0)

    def allowed_of(self, name: str, size: float, slope: float) -> float:
        """By how much a gradient of that size may differ that may be off by a `slope` of it anyway."""
        return max(size * self.least, size * slope + self.allowed("gradient", name))


def may_magnify(trained: Mapping[str, Any], states: Mapping[str, Any]) -> bool:
    """Whether a network with these parameters and states of layers makes more of last places: one that is
    normalized, or goes along time."""
    return bool(states) or recurs(trained)


def shifted(parameters: Arrays, share: float = 1.0, sizes: Arrays | None = None) -> Iterator[Arrays]:
    """The same but for last places, or a `share` of them, in pairs of opposite directions: of the values
    themselves, or of these `sizes`."""
    of = {**parameters, **(sizes or {})}
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        noise = {name: share * PLACES * rng.uniform(-1, 1, np.shape(one)) for name, one in parameters.items()}
        for sign in (1, -1):
            yield {name: one + sign * noise[name] * of[name] for name, one in parameters.items()}


def doubt_of_batch(witness: Any, trained: Arrays, states: Arrays, images: Arrays, times: int) -> Doubt:
    """What last places make of a witness's answer: of parameters, and of each single value that goes into a
    layer that looks at the whole batch. Where values hardly differ, it divides by little more than these.
    And of its statistics, and of the sums by which it takes away, on the way back, the mean of a gradient and
    what lies along its own values (statistics.py). Where there are too many decisions for the search, also
    what comes of those that last places turn. The batch has each image so many `times`."""
    witness.load({**trained, **states})
    plain = witness.gradient(images, {})
    looking = [node for node in witness.nodes if node["shape"] and layer_traits(node["kind"]).couples_batch]
    # In their order, so that each gets the same noise in every process.
    looked_at = dict.fromkeys(one for node in looking for one in node["inputs"] if one in plain.activation)
    values: Arrays = {f"of {one}": plain.activation[one] for one in looked_at}
    for node in looking:
        off = sum_places(times * node["shape"][0], math.prod(node["shape"][2:]))
        for one in node["parameters"]:
            if one["role"] == "parameter":
                values[f"of {one['name']}"] = np.full(one["shape"], off / PLACES)

    decisions = sum(math.prod(node["shape"]) for node in witness.nodes if layer_traits(node["kind"]).kinks)
    turning = decisions > MANY
    # What decisions have done is no distance to their edges.
    margins = {} if turning else _no_margins(witness, plain.activation)

    def ask(at: Arrays) -> Any:
        witness.load({**{name: at[name] for name in trained}, **states})
        nudges = {name.partition(" ")[2]: at[name] - values[name] for name in values}
        again = witness.gradient(images, nudges)
        _widen(margins, again.activation, plain.activation)
        return again

    found = normalizations(witness.nodes, plain.activation, times)
    sizes = weights_off(found, trained)
    doubt = doubt_of(plain, {**trained, **values}, ask, turning=turning, sizes=sizes)
    for kind, name in doubt.of:
        if kind == "activation":  # of the whole batch
            doubt.of[kind, name] *= math.sqrt(times)
    # One number in two directions may hardly move by chance: by what its slopes say, then.
    slopes = (inner(plain.gradient[name] ** 2, sizes.get(name, trained[name]) ** 2) for name in trained)
    doubt.loss = max(doubt.loss, PLACES * math.sqrt(sum(slopes)))
    doubt.least = LEAST if looking else 0.0
    for name, moved in states_off(found).items():
        doubt.of["state", name] += norm(moved)
    if not turning:
        doubt.answered, doubt.margins = plain, margins
    return doubt


def doubt_of(
    answered: Any,
    parameters: Arrays,
    ask: Callable[[Arrays], Any],
    *,
    turning: bool = False,
    sizes: Arrays | None = None,
) -> Doubt:
    """How far the answers that `ask` gets lie from the one that a judge gave at these parameters: in the
    direction of each pair in which that is less, for a decision may turn in the other. `turning`: with what
    last places turn, the whole of them at once. `sizes`: of what the last places are, if not of the values
    themselves."""
    share = 1.0 if turning else FINER
    losses: list[float] = []
    away: dict[tuple[str, str], list[float]] = defaultdict(list)
    for other in shifted(parameters, share, sizes):
        again = ask(other)
        losses.append(abs(again.loss - answered.loss) / share)
        for kind in ("gradient", "activation", "state"):
            theirs = getattr(again, kind)
            for name, values in getattr(answered, kind).items():
                apart = np.ravel(np.asarray(theirs[name], np.float64) - values)
                # Without a BLAS, as elsewhere.
                away[kind, name].append(math.sqrt(float(np.einsum("i,i->", apart, apart))) / share)
    least = max if turning else _smooth
    return Doubt(least(losses), turning=turning, of={key: least(values) for key, values in away.items()})


def _smooth(distances: list[float]) -> float:
    return max(min(distances[pair : pair + 2]) for pair in range(0, len(distances), 2))


def margins_of(
    witness: Any, parameters: Arrays, images: Arrays, activation: Mapping[str, NDArray[Any]], times: int
) -> dict[str, float]:
    """How far last places of the parameters, and the rounding of statistics of the images, each so many
    `times` in its batch, move the values of each node that something decides by, at most, as parts of their
    root mean square: in deep networks, the farther the deeper."""
    names = [
        one["name"] for node in witness.nodes for one in node["parameters"] if one["role"] == "parameter"
    ]
    margins = _no_margins(witness, activation)
    sizes = weights_off(normalizations(witness.nodes, activation, times), parameters)
    for other in shifted({name: parameters[name] for name in names}, FINER, sizes):
        witness.load({**parameters, **other})
        _widen(margins, witness.gradient(images, {}).activation, activation)
    return margins


def _no_margins(witness: Any, activation: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Of each node that something decides by."""
    sources: set[str] = set()
    for node in witness.nodes:
        traits = layer_traits(node["kind"])
        if traits.kinks or traits.picks_largest:
            sources |= {*node["inputs"]} & activation.keys()
    return dict.fromkeys(sources, 0.0)


def _widen(
    margins: dict[str, float], moved: Mapping[str, NDArray[Any]], activation: Mapping[str, NDArray[Any]]
) -> None:
    """To what `moved` shows, by a small part of last places."""
    for name, margin in margins.items():
        farthest = float(np.max(np.abs(moved[name] - activation[name]))) / FINER
        rms = float(np.sqrt(np.mean(activation[name] ** 2))) or 1.0
        margins[name] = max(margin, farthest / rms)
