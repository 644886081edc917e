"""Steps that nobody looked into, followed by the judge from the initial values.

From the second step on a relu's input may lie so close to 0 that f32 decides otherwise than the judge does:
no batch was chosen for the weights of those steps. Whoever's losses leave the judge's way behind such a step
must show it, as in flips.py: the unit is found where the judge passes it, the judge goes on with it turned,
and all losses from there must be the contender's. Nothing is excused by its size.

Where images depend on each other no single image can be told apart in a way, and what last places do to one
step the next ones magnify, until a way says nothing any more. How soon, the judge's own ways show, from
parameters whose last places are others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32
from timetrial.agreement.rounding import TIMES, Doubt, shifted
from timetrial.agreement.sizes import UNIT, norm
from timetrial.agreement.update import Rule, Walk
from timetrial.proof.flips import NEARER, every_tie, turns
from timetrial.proof.judge import Judge, Ties
from timetrial.questions.observed import Batches, Tensors

TURNED = 1e-3  # of the loss behind a step in which decisions of coupled images may have turned
MOST_DOUBT = 0.01  # of a loss: beyond it a way says nothing, and each step is judged by itself besides
MOST_TURNS = 3  # of a way: more in a few steps are no accident


@dataclass(frozen=True)
class Way:
    """Losses of the steps, and where they lead, with the states of layers. `words`: what was turned."""

    losses: list[float]
    end: Tensors
    words: list[str] = field(default_factory=list)
    tolerance: float = F32.loss  # relative, of the first step
    doubts: Sequence[float] = ()  # of each loss, absolute: what rounding makes of coupled images
    is_coupled: bool = False  # images depend on each other
    lead: float = 0.0  # as a part of the way: how far rounding may lead from its end

    def growth(self, step: int, *, seen: bool = False) -> float:
        """How many times the tolerance the loss of a step may be off. `seen`: it was looked into besides, and
        decisions that turned there are known."""
        turned = TURNED if step and self.is_coupled and not seen else 0.0
        return max(GROWTH**step, turned / self.tolerance, self._doubt(step) / self.tolerance)

    def says(self, steps: int) -> int:
        """Of how many of so many steps it says what they lead to: of the first always."""
        return next((step for step in range(1, steps) if self._doubt(step) > MOST_DOUBT), steps)

    def _doubt(self, step: int) -> float:
        return TIMES * self.doubts[step] / (abs(self.losses[step]) or 1.0) if self.doubts else 0.0

    def errors(self, losses: Sequence[float]) -> list[float]:
        """Of a contender's losses, as parts of what each step may differ by."""
        return [
            relative_distance(mine, theirs) / (self.tolerance * GROWTH**step)
            for step, (mine, theirs) in enumerate(zip(losses, self.losses, strict=False))
        ]


def relative_distance(mine: float, theirs: float) -> float:
    """Infinity for what is not finite; the plain one where theirs is 0."""
    distance = abs(mine - theirs) / (abs(theirs) or 1.0)
    return distance if math.isfinite(distance) else math.inf


class Guide:
    """Goes the judge's way through the batches of a workload, for a contender that takes ties this way.
    `states`: of layers, at the start. `doubt_of`: what rounding makes of the loss of a batch, by everything
    that can be shifted; at the start, last places of parameters make less of it."""

    def __init__(
        self,
        judge: Judge,
        batches: Batches,
        rule: Rule,
        start: Tensors,
        ties: Ties = "first",
        states: Tensors | None = None,
        tolerance: float = F32.loss,
        doubt_of: Callable[[Tensors, Tensors], Doubt | None] = lambda parameters, batch: None,
    ):
        self._tolerance = tolerance
        self._doubt_of = doubt_of
        self._judge = judge
        self._batches = batches
        self._rule = rule
        self._start = start
        self._states = states or {}
        self._ties = ties

    def way(self, stream: str, steps: int, turned: Mapping[int, Tensors] | None = None) -> Way:
        """So many steps; `turned`: what is added to the gradient of a step."""
        walk = Walk(self._start, self._rule)
        losses, now = [], {**walk.parameters, **self._states}
        for step in range(steps):
            batch = self._batches.batch(stream, step)
            answer = self._judge.gradient(now, batch)
            losses.append(answer.loss)
            gradient = _added(answer.gradient, (turned or {}).get(step))
            if self._ties == "all":
                gradient = _added(gradient, every_tie(self._judge, now, batch).difference)
            walk.step(gradient)
            now = {**walk.parameters, **answer.state}
        return Way(losses, now, tolerance=self._tolerance, is_coupled=bool(self._states))

    def way_of(self, stream: str, losses: Sequence[float]) -> Way:
        """The way that a contender with these losses has gone, if turning decisions on the edge leads there;
        otherwise the judge's own."""
        own = way = self.way(stream, len(losses))
        if self._states:  # what a single image turned cannot be told apart in a way
            errors = own.errors(losses)
            if all(error <= 1 for error in errors):
                return own
            doubted = self.doubted(own, stream)
            return doubted if errors[0] <= 1 else self._first_doubted(doubted)
        turned: dict[int, Tensors] = {}
        words: list[str] = []
        while (late := _first_off(way, losses)) is not None and len(words) < MOST_TURNS:
            nearest, best = way.errors(losses)[late], None
            for step in range(late):
                batch, before = self._batches.batch(stream, step), self.way(stream, step, turned).end
                # All of them first: the judge is asked for other things in between.
                for turn in list(turns(self._judge, before, batch, self._ties)):
                    said = f"step {step + 1}: {turn.words}"
                    # Each unit turns once, whatever its margin is on another way.
                    known = any(_unit(said) == _unit(one) for one in words)
                    for share in () if known else turn.shares:
                        part = {name: share * values for name, values in turn.difference.items()}
                        trial = {**turned, step: _added(part, turned.get(step))}
                        error = self.way(stream, late + 1, trial).errors(losses)[late]
                        if error < NEARER * nearest:
                            nearest = error
                            best = (trial, said)
            if best is None:
                return own
            turned, found = best
            way = self.way(stream, len(losses), turned)
            words.append(found)
        if _first_off(way, losses) is not None:
            return own
        return replace(way, words=words)

    def doubted(self, own: Way, stream: str) -> Way:
        """Its own way, with how far losses and end lie apart where last places of the start are others."""
        start, doubts, lead = self._start, np.zeros(len(own.losses)), 0.0
        size = math.sqrt(sum(norm(own.end[name] - start[name]) ** 2 for name in start)) or 1.0
        for self._start in shifted(start):
            other = self.way(stream, len(own.losses))
            doubts = np.maximum(doubts, np.abs(np.subtract(other.losses, own.losses)))
            apart = math.sqrt(sum(norm(other.end[name] - own.end[name]) ** 2 for name in start))
            lead = max(lead, TIMES * apart / size)
        self._start = start
        return replace(own, doubts=doubts.tolist(), lead=lead)

    def _first_doubted(self, way: Way) -> Way:
        """With a first loss that is doubted so many times as much as all rounding moves the loss of a batch
        of the proof, which has few images, farther than last places of the start do; to MOST_DOUBT."""
        batch = self._batches.batch("proof", 0)
        doubt = self._doubt_of({**self._start, **self._states}, batch)
        if doubt is None:
            return way
        plain, *others = (
            self._judge.gradient({**at, **self._states}, batch).loss
            for at in (self._start, *shifted(self._start))
        )
        apart = max(*(abs(other - plain) for other in others), UNIT * abs(plain)) or 1.0
        first, *later = way.doubts
        most = MOST_DOUBT / TIMES * abs(way.losses[0])
        return replace(way, doubts=[min(first * max(1.0, doubt.loss / apart), most), *later])


def _unit(words: str) -> str:
    return words.partition(", margin")[0]


def _first_off(way: Way, losses: Sequence[float]) -> int | None:
    """The first step whose loss is not the contender's. The first of all has nothing behind it to turn."""
    errors = way.errors(losses)
    late = next((step for step, error in enumerate(errors) if not error <= 1), None)
    return late or None


def _added(one: Tensors, other: Tensors | None) -> Tensors:
    if other is None:
        return one
    return {name: np.asarray(values, np.float64) + other[name] for name, values in one.items()}
