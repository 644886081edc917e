"""Hears what a contender showed, one observation after the other, and looks for what rounding made of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32, Precision
from timetrial.agreement.rounding import TIMES, WORDS, Doubt, doubt_of_batch, may_magnify
from timetrial.agreement.sizes import UNIT, norm, size_of
from timetrial.agreement.update import Rule
from timetrial.proof.cancelling import Terms, nothing_else, sizes_of_terms
from timetrial.proof.comparisons import (
    comparison,
    is_of_gradient,
    kept_comparisons,
    named,
    spread_of,
    start_comparisons,
    state_comparison,
    tensor_comparison,
)
from timetrial.proof.coupled import explain_coupled
from timetrial.proof.expected import Expected
from timetrial.proof.flips import MORE_TURNED, every_tie, explain, fits, turns
from timetrial.proof.hints import hint
from timetrial.proof.judge import TIES, Answer, Judge, Ties
from timetrial.proof.parts import evenly
from timetrial.proof.rule import changes, implied_gradient
from timetrial.proof.ways import Guide, relative_distance
from timetrial.questions.observed import Look, Observation, Plain, Tensors, rows_of
from timetrial.records.model import Comparison

ROUNDINGS = 4.0  # of a probability, of UNIT: the exponentials, their sum, the quotient, and a clip beside 1
LEAST_LOSS = 1e-30  # for a gradient: of a probability that is 1 in double precision any part is rounding
FIRST_LOSSES = "workload: "  # how comparisons of the losses on the workload's own batches begin


class Court:
    """Hears observations one by one."""

    def __init__(self, judge: Judge, expected: Expected, precision: Precision):
        self.comparisons: list[Comparison] = []
        self.turned: list[str] = []
        self.hints: dict[str, str] = {}
        self.precision = precision
        self._judge = judge
        self._expected = expected
        # "gradient" has no optimizer to speak of.
        self._rule = Rule.of(expected.optimizer, expected.undecayed)
        self._ties: Ties = "first"  # what explained this contender's gradients so far

    def hear(self, seen: Observation) -> None:
        """Adds what it says to the comparisons."""
        if seen.fresh:
            self.comparisons += start_comparisons(seen, self._expected)
        if seen.gradient is not None or seen.after is not None:
            self._hear_gradient(seen)
        if seen.kept is not None:
            self.comparisons += kept_comparisons(seen, seen.kept)
        if seen.output is not None:
            batch = self._expected.batches.batch(seen.stream, seen.row)
            judged = self._judge.output(self._values(seen.before), batch)
            name = named(seen, "output")
            self.comparisons.append(tensor_comparison(name, seen.output, judged, self.precision.value))

    def _values(self, seen: Look) -> Tensors:
        """What the judge computes at."""
        return {
            **_ordered(seen.parameter, self._expected.initial),
            **_ordered(seen.layer_state, self._expected.states),
        }

    def _hear_gradient(self, seen: Observation) -> None:
        batch = self._expected.batches.batch(seen.stream, seen.row)
        parameters = self._values(seen.before)
        answer = self._judge.gradient(parameters, batch, activations=seen.activation is not None)
        answer = replace(answer, gradient=_ordered(answer.gradient, self._expected.initial))
        found = self._gradient_comparisons(seen, answer)
        failed = any(not one.passed and one.error is not None for one in found) and self.precision is F32
        # What failed before has no excuse any more; looking for one takes as long as all the judging.
        if failed and all(one.passed for one in self.comparisons):
            answer, found = self._excused(seen, answer, parameters, batch, found)
        first = next((one for one in found if not one.passed), None)
        # Of a large network a hint takes seconds, and the verdict names the first failure only.
        if first is not None and all(one.passed for one in self.comparisons):
            words_of = hint(first, seen, answer, self._rule)
            if words_of:
                self.hints[first.tensor] = words_of
        self.comparisons += found

    def _excused(
        self, seen: Observation, answer: Answer, parameters: Tensors, batch: Tensors, found: list[Comparison]
    ) -> tuple[Answer, list[Comparison]]:
        """The judge's answer with the decisions turned that explain everything, and what is left of `found`
        then; or both as they are. Where images depend on each other rounding makes more of them besides."""
        asked = self._judge, parameters, batch, self._expected.cancelling
        terms = functools.cache(functools.partial(sizes_of_terms, *asked))
        measured = self._by_terms(seen, answer, terms, found)
        if measured is not found:
            return answer, measured
        doubt = self._doubt(parameters, batch)
        for ties in sorted(TIES, key=lambda one: one != self._ties):
            for explained, words in self._explained(seen, answer, parameters, batch, ties, doubt):
                again = self._gradient_comparisons(seen, explained)
                again = self._by_terms(seen, explained, terms, again)
                # Only what explains everything counts as an explanation.
                is_explained = bool(words) and all(one.passed for one in again if is_of_gradient(one))
                if doubt is not None and not (is_explained and all(one.passed for one in again)):
                    again = self._gradient_comparisons(seen, explained, doubt)
                    words, is_explained = [*words, WORDS], all(one.passed for one in again)
                if is_explained:
                    self._ties = ties
                    self.turned += [named(seen, one) for one in words]
                    return explained, again
        return answer, found

    def _doubt(self, parameters: Tensors, batch: Tensors) -> Doubt | None:
        """None: of a network that makes no more of last places than is allowed anyway."""
        if not may_magnify(self._expected.initial, self._expected.states):
            return None
        first, place = evenly(batch, whole=self._expected.carries_state)
        witness, images = self._judge.witness(images=len(first)), rows_of(batch, first)
        trained, states = (_ordered(parameters, of) for of in (self._expected.initial, self._expected.states))
        return doubt_of_batch(witness, trained, states, images, len(place) // len(first))

    def _by_terms(
        self, seen: Observation, answer: Answer, terms: Terms, found: list[Comparison]
    ) -> list[Comparison]:
        """The same, or, if nothing failed but what may cancel, with that measured by what the samples add to
        it, if that is all there is to it."""
        if self._expected.couples_batch or not nothing_else(found, self._expected.cancelling):
            return found
        again = self._gradient_comparisons(seen, answer, terms=terms())
        return again if all(one.passed for one in again) else found

    def _gradient_comparisons(
        self,
        seen: Observation,
        answer: Answer,
        doubt: Doubt | None = None,
        terms: Mapping[str, float] | None = None,
    ) -> list[Comparison]:
        value, slope = self.precision.value, self._slope(answer.loss)
        sizes = {
            name: max(size_of(answer.gradient, name), (terms or {}).get(name, 0.0))
            for name in self._expected.initial
        }
        doubt = doubt or Doubt()
        sizes = {name: doubt.allowed_of(name, size, slope) / slope for name, size in sizes.items()}
        kept = TIMES if doubt.least else 1.0  # last layers of few images are off by two roundings
        found = [
            tensor_comparison(
                named(seen, f"activation {node}"),
                seen.activation[node],
                answer.activation[node],
                value,
                max(kept * norm(answer.activation[node]), doubt.allowed("activation", node) / value),
            )
            for node in self._expected.nodes
            if seen.activation is not None and node in seen.activation and node in answer.activation
        ]
        mine = math.nan if seen.loss is None else seen.loss
        growth = TIMES * doubt.loss / (abs(answer.loss) * self.precision.loss or 1.0)
        found.append(self._loss(named(seen, "loss"), mine, answer.loss, max(1.0, growth)))
        if seen.gradient is not None:
            for name in reversed(list(self._expected.initial)):
                pair = seen.gradient[name], answer.gradient[name]
                found.append(tensor_comparison(named(seen, f"gradient {name}"), *pair, slope, sizes[name]))
        if seen.after is not None:
            for change in changes(seen, answer.gradient, self._rule, slope, sizes):
                size = change.size if change.size > 0 else 1.0
                name = named(seen, f"{change.kind} {change.name}")
                found.append(comparison(name, "relative_l2", change.error / size, change.limit / size))
        behind = seen.moved if seen.after is None else seen.after.layer_state
        for name in self._expected.states if behind else ():
            judged = answer.state[name]
            doubted = doubt.allowed("state", name) + 4 * UNIT * spread_of(answer.state, name)
            found.append(state_comparison(seen, behind, name, judged, kept * value, doubted))
        return found

    def _explained(
        self,
        seen: Observation,
        answer: Answer,
        parameters: Tensors,
        batch: Tensors,
        ties: Ties,
        doubt: Doubt | None,
    ) -> Iterator[tuple[Answer, list[str]]]:
        """The judge's answer with the decisions turned that speak for what was seen, and their words, as far
        as somebody asks. Where the doubt has what such decisions come to, none need be found."""
        if doubt is not None and doubt.turning:
            yield answer, []
        shown: Tensors = {}
        for name in answer.gradient:
            if seen.gradient is not None:
                mine: NDArray[Any] = seen.gradient[name]
            else:
                implied = implied_gradient(seen, name, self._rule, answer.gradient)
                if implied is None:
                    continue
                mine = implied
            if not np.all(np.isfinite(mine)):
                return
            shown[name] = mine
        if self._expected.couples_batch or not fits(parameters):  # no sample is judged alone; many weights
            # Below twice the tolerance it may be what rounding makes of such layers, and no decision.
            tolerance = (TIMES if self._expected.states else 1) * self._slope(answer.loss)
            asked = self._judge, parameters, batch, shown, tolerance, ties, doubt
            corrected, words = explain_coupled(*asked, whole=self._expected.carries_state)
            yield replace(answer, gradient=corrected) if words else answer, words
            return
        residual = {
            name: np.asarray(mine, np.float64) - answer.gradient[name] for name, mine in shown.items()
        }
        possible = [every_tie(self._judge, parameters, batch)] if ties == "all" else []
        left = turns(self._judge, parameters, batch, ties)
        for number, many in enumerate(MORE_TURNED):
            more = [*islice(left, many)]
            if number and not more:
                return
            possible += more
            corrected, words = explain(residual, answer.gradient, possible)
            yield replace(answer, gradient=corrected), words

    def follow(self, plain: Plain, forced: Sequence[float] = ()) -> None:
        """The judge's own steps from the initial values: their losses, and roughly their way, must be the
        contender's. `forced`: what its losses were in these steps when each was looked into, where images
        depend on each other; these it must repeat, and of the rest what the judge's way says."""
        start = self._start()
        guide = self._guide(start)
        is_long = plain.after is None and bool(self._expected.states)  # for the judge, with all its doubts
        way = guide.way_of(plain.stream, plain.losses[:1] if is_long else plain.losses)
        self.turned += [f"plain {words}" for words in way.words]
        says = way.says(len(way.losses))
        for step, mine in enumerate(plain.losses):
            name = f"plain step {step + 1}: loss"
            pairs = [(one, GROWTH**step) for one in forced[step : step + 1]]
            if step < says:
                pairs.append((way.losses[step], way.growth(step, seen=bool(pairs))))
            seen = [self._loss(name, mine, theirs, growth) for theirs, growth in pairs]
            # By either: whoever does not repeat its bits may have turned other decisions this time.
            self.comparisons += sorted(seen, key=lambda one: not one.passed)[:1]
        if plain.after is not None:
            ends = [_way(end, start) for end in (plain.after.parameter, way.end)]
            name = f"the way of {len(plain.losses)} plain steps"
            found = tensor_comparison(name, ends[0], ends[1], self.precision.way)
            if not found.passed and self._expected.states:
                way = guide.doubted(way, plain.stream)
            if way.lead <= self.precision.way:
                self.comparisons.append(found)

    def first_losses(self, losses: Sequence[float], *, steps: int, constant: bool) -> None:
        """On the workload's own batches, of the first `steps`; `constant`: parameters stay as they are."""
        start, growths = self._start(), [1.0] * steps
        if constant:
            judged, now = [], {**start, **_wide(self._expected.states)}
            for step in range(steps):
                answer = self._judge.gradient(now, self._expected.batches.batch("train", step))
                judged.append(answer.loss)
                now |= answer.state
        else:
            way = self._guide(start).way_of("train", losses[:steps])
            self.turned += [f"{FIRST_LOSSES}{words}" for words in way.words]
            judged = way.losses[: way.says(steps)]
            growths = [way.growth(step) for step in range(steps)]
        for step, (mine, theirs) in enumerate(zip(losses, judged, strict=False)):
            name = f"{FIRST_LOSSES}loss of step {step + 1}"
            self.comparisons.append(self._loss(name, mine, theirs, growths[step]))

    def _start(self) -> Tensors:
        return _wide(self._expected.initial)

    def _guide(self, start: Tensors) -> Guide:
        states = _wide(self._expected.states)
        return Guide(
            self._judge,
            self._expected.batches,
            self._rule,
            start,
            self._ties,
            states,
            tolerance=self.precision.loss,
            doubt_of=self._doubt,
        )

    def _loss(self, name: str, mine: float, theirs: float, growth: float = 1.0) -> Comparison:
        tolerance = max(self.precision.loss * growth, self._rounding(theirs))
        return comparison(name, "relative", relative_distance(mine, theirs), tolerance)

    def _rounding(self, loss: float) -> float:
        """Of a small loss that is the logarithm of a probability, as a part of it and of its gradient, the
        probability less 1: of a number near 1 f32 keeps what is larger than UNIT. AlexNet in Keras 3, at a
        loss of 1.2e-5: off by 0.3 %, half a last place of the probability."""
        return ROUNDINGS * UNIT / (abs(loss) or 1.0) if self._expected.is_logarithm else 0.0

    def _slope(self, loss: float) -> float:
        """Of a gradient, what it may be off by."""
        return max(self.precision.gradient, self._rounding(max(abs(loss), LEAST_LOSS)))


def _way(end: Tensors, start: Tensors) -> NDArray[np.float64]:
    """Of all parameters, one behind the other."""
    return np.concatenate([(np.asarray(end[name], np.float64) - start[name]).ravel() for name in start])


def _wide(tensors: Tensors) -> Tensors:
    return {name: np.asarray(values, np.float64) for name, values in tensors.items()}


def _ordered(mine: Tensors, initial: Tensors) -> Tensors:
    return {name: mine[name] for name in initial}
