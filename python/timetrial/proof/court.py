"""Hears what a contender showed, one observation after the other."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32, Precision
from timetrial.agreement.rounding import Doubts, largest, of_disturbances, of_shifts
from timetrial.agreement.sizes import UNIT, distance, norm
from timetrial.agreement.sums import of_gradient
from timetrial.agreement.update import Rule
from timetrial.control.cpus import allowed_cpus
from timetrial.core import recurs
from timetrial.proof.cancelling import Terms, nothing_else, sizes_of_terms
from timetrial.proof.comparisons import (
    comparison,
    kept_comparisons,
    named,
    relative_distance,
    start_comparisons,
    state_comparison,
    statistic_size,
    tensor_comparison,
)
from timetrial.proof.decisions import Search, ordered
from timetrial.proof.expected import Expected, normalized
from timetrial.proof.hints import hint
from timetrial.proof.judge import Answer, Judge
from timetrial.proof.layers import layer_comparisons
from timetrial.proof.parts import is_huge, samples
from timetrial.proof.rule import changes, implied_gradient
from timetrial.proof.same_for_all import loss_of, output_of
from timetrial.questions.observed import Look, Observation, Plain, Tensors, rows_of, sample_count
from timetrial.records.model import Comparison

ROUNDINGS = 4.0  # of a probability, of UNIT: the exponentials, their sum, the quotient, and a clip beside 1
LEAST_LOSS = 1e-30  # for a gradient: of a probability that is 1 in double precision any part is rounding
FIRST_LOSSES = "workload: "  # how comparisons of the losses on the workload's own batches begin
# Of the loss of a whole batch of different images that depend on each other, of which nothing else was shown.
UNSEEN = 1e-3
MOST_DOUBTED = 0.25  # of a gradient: by more no rounding excuses one of which it leaves anything
MOST_DOUBTED_SHOWN = 0.01  # the same of what a layer shows, of states and of the loss
# Times what is allowed. ResNet-20 on images that come 2 and 16 times: decisions of eigen's that were not what
# it showed were off by 8 to 40, oneDNN's sums by up to 3.6.
FAR_OFF = 4.0
FIRST_SHARE = 0.5  # of the decisions that may be tried, before what last places make is known
MOST_CARRIED = 0.01  # of a gradient, for it to be taken for as much at the next look
WORDS = "within what last places make of the judge's own numbers"


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
        self._first: tuple[Observation, Answer] | None = None  # until the first step was judged
        self._has_begun = self._has_heard = False
        self._heard: Tensors | None = None  # what was shown last: its layers have been heard
        # Of an answer: what rounding makes of it, and what part of each gradient that is.
        self._disturbed: tuple[weakref.ref[Answer], Doubts, Mapping[str, float]] | None = None
        self._excused: Doubts = {}  # in the last observation
        self._held: set[str] = set()  # parameters of whose gradients rounding left something, somewhere

    @property
    def passed(self) -> bool:
        """Whether everything has, so far."""
        return all(one.passed for one in self.comparisons)

    @property
    def never_held(self) -> list[str]:
        """Parameters of whose gradients rounding may have left nothing wherever one was looked at."""
        return [name for name in self._expected.initial if self._has_heard and name not in self._held]

    def hear(self, seen: Observation) -> None:
        """Adds what it says to the comparisons."""
        known = {layer["name"] for layer in self._expected.layers}
        if seen.shown is not None and not seen.shown.keys() <= known:
            seen = replace(seen, shown={name: one for name, one in seen.shown.items() if name in known})
        if seen.fresh:
            self.comparisons += start_comparisons(seen, self._expected)
        if seen.gradient is not None or seen.after is not None:
            self._hear_gradient(seen)
        elif seen.loss is not None:
            batch, values = self._expected.batches.batch(seen.stream, seen.row), self._values(seen.before)
            theirs = self._judge.gradient(values, batch).loss
            self.comparisons.append(self._unseen_loss(named(seen, "loss"), seen.loss, theirs))
        if seen.kept is not None:
            self.comparisons += kept_comparisons(seen, seen.kept)
        if seen.output is not None:
            batch = self._expected.batches.batch(seen.stream, seen.row)
            asked = self._values(seen.before), batch
            judged = output_of(self._judge, *asked) if seen.fresh else self._judge.output(*asked)
            name = named(seen, "output")
            self.comparisons.append(tensor_comparison(name, seen.output, judged, self.precision.value))

    def repeated(self, plain: Plain) -> None:
        """Steps that nobody looked into have the losses of the same steps, each of which was looked into,
        and lead to the same end."""
        if len(plain.losses) != len(plain.seen_losses):
            words = f"{len(plain.losses)} losses of {len(plain.seen_losses)} plain steps"
            self.comparisons.append(comparison(words, "relative", math.inf, 0.0))
        self._same("plain step {}: loss", plain.losses, plain.seen_losses)
        ends = (plain.end.parameter, plain.seen_end.parameter)
        start = self._expected.initial
        apart = math.hypot(*(distance(ends[0][name], ends[1][name]) for name in start))
        way = math.hypot(*(distance(ends[1][name], start[name]) for name in start))
        size = math.hypot(*(norm(ends[1][name]) for name in start))
        steps = len(plain.seen_losses)
        limit = self.precision.way * way + 2 * UNIT * steps * size  # each weight is rounded in each step
        name = f"the way of {steps} plain steps"
        self.comparisons.append(comparison(name, "relative_l2", apart / (way or 1.0), limit / (way or 1.0)))

    def first_losses(self, losses: Sequence[float], seen: Sequence[float]) -> None:
        """On the workload's own batches: those of the same steps that were looked into (`seen`). Of a large
        network none was: the first is the judge's own, of a whole batch."""
        self._same(f"{FIRST_LOSSES}loss of step {{}}", losses, seen)
        if seen:
            return
        now = {**self._expected.initial, **self._expected.states}
        judged = loss_of(self._judge, now, self._expected.batches.batch("train", 0))
        self.comparisons.append(self._unseen_loss(f"{FIRST_LOSSES}loss of step 1", losses[0], judged))

    def _unseen_loss(self, name: str, mine: float, theirs: float) -> Comparison:
        """Of a whole batch of which nothing else was shown."""
        unseen = UNSEEN / self.precision.loss if self._expected.couples_batch else 1.0
        return self._loss(name, mine, theirs, unseen)

    def _same(self, name: str, losses: Sequence[float], seen: Sequence[float]) -> None:
        for step, (mine, theirs) in enumerate(zip(losses, seen, strict=False)):
            self.comparisons.append(self._loss(name.format(step + 1), mine, theirs, GROWTH**step))

    def _values(self, seen: Look) -> Tensors:
        """What the judge computes at."""
        return {
            **ordered(seen.parameter, self._expected.initial),
            **ordered(seen.layer_state, self._expected.states),
        }

    def _hear_gradient(self, seen: Observation) -> None:
        batch = self._expected.batches.batch(seen.stream, seen.row)
        answer = self._answer(seen, batch)
        found = self._comparisons(seen, batch, answer)
        self._excused, self._has_heard = {}, True
        failed = any(not one.passed and one.error is not None for one in found) and self.precision is F32
        # What failed before has no excuse any more; looking for one takes as long as all the judging.
        if failed and self.passed:
            found = self._closer(seen, batch, answer, found)
        for name in self._expected.initial:
            if self._excused.get(("gradient", name), 0.0) <= answer.sizes[name]:
                self._held.add(name)
        first = next((one for one in found if not one.passed), None)
        # Of a large network a hint takes seconds, and the verdict names the first failure only.
        if first is not None and self.passed:
            words_of = hint(first, seen, answer, self._rule)
            if words_of:
                self.hints[first.tensor] = words_of
        self.comparisons += found
        self._heard = seen.shown

    def _answer(self, seen: Observation, batch: Tensors) -> Answer:
        """The judge's, at what was shown. The first step begins as the first gradient does: it is asked
        once."""
        if not seen.fresh:
            self._first = None
        if self._first is not None and _is_same(self._first[0], seen):
            answer, self._first = self._first[1], None  # gigabytes, of a large network
            return answer
        answer = self._judge.gradient(self._values(seen.before), batch, seen.shown)
        answer = replace(answer, gradient=ordered(answer.gradient, self._expected.initial))
        if seen.fresh and not self._has_begun:
            self._first, self._has_begun = (seen, answer), True
        return answer

    def _closer(
        self, seen: Observation, batch: Tensors, answer: Answer, found: list[Comparison]
    ) -> list[Comparison]:
        """`found`, or what is left of it: sums that cancel are measured by their terms, networks that magnify
        last places by what these make of the judge's own answer, and decisions that were not what was shown
        are looked for: before that excuse where more is off than rounding makes as a rule."""
        parameters = self._values(seen.before)
        asked = self._judge, parameters, batch, self._expected.cancelling
        terms = functools.cache(functools.partial(sizes_of_terms, *asked))
        measured = self._by_terms(seen, batch, answer, terms, found)
        if measured is not found:
            return measured
        search = functools.cache(functools.partial(self._search, seen, batch, answer))
        known: Doubts = {}

        def turned(share: float = 1.0) -> list[Comparison]:
            return self._with_turns(seen, batch, answer, found, known, terms, search, share)

        def within(doubts: Callable[[Observation, Tensors, Answer], Doubts]) -> list[Comparison]:
            nonlocal known
            known = doubts(seen, batch, answer)
            again = self._comparisons(seen, batch, answer, known=known) if known else found
            if not all(one.passed for one in again):
                return found
            self._excused = known
            self.turned.append(named(seen, WORDS))
            return again

        attempts: list[Callable[[], list[Comparison]]] = [turned]
        if self._expected.couples_batch or recurs(self._expected.initial):
            roundings = self._of_before, self._of_disturbances, self._of_shifts
            attempts = [*(functools.partial(within, doubts) for doubts in roundings), turned]
            if _most_off(found) > FAR_OFF:
                attempts.insert(1, functools.partial(turned, FIRST_SHARE))
        return next((again for attempt in attempts if (again := attempt()) is not found), found)

    def _with_turns(
        self,
        seen: Observation,
        batch: Tensors,
        answer: Answer,
        found: list[Comparison],
        known: Doubts,
        terms: Terms,
        search: Callable[[], Search | None],
        share: float,
    ) -> list[Comparison]:
        """`found`, or what is left of it where decisions are looked for that were not what was shown.
        `share`: of all that may be tried."""
        if any(not one.passed for one in found if "activation " in one.tensor):
            return found
        looking = search()
        if looking is None:
            return found
        for one in looking.found(self._sizes_and_limits(answer, known, {})[1], share):
            explained = replace(answer, gradient=one.gradient)
            again = self._comparisons(seen, batch, explained, known=known)
            again = self._by_terms(seen, batch, explained, terms, again)
            # Only what explains everything counts as an explanation.
            if one.words and all(each.passed for each in again):
                self._excused = known
                self.turned += [named(seen, words) for words in [*one.words, *([WORDS] if known else [])]]
                return again
        return found

    def _search(self, seen: Observation, batch: Tensors, answer: Answer) -> Search | None:
        """None where nothing can be found."""
        if seen.shown is None or not all(np.all(np.isfinite(one)) for one in answer.gradient.values()):
            return None
        mine, rows = self._gradients_of(seen, answer), self._rows(batch)
        if not mine:
            return None
        times = sample_count(batch) // sample_count(rows)
        values = self._values(seen.before)
        return Search(self._judge, self._expected.layers, values, rows, seen.shown, answer, mine, times)

    def _of_before(self, seen: Observation, batch: Tensors, answer: Answer) -> Doubts:
        """What rounding of a backward pass made of an earlier answer, in proportion to the gradients, where
        that was little."""
        del seen, batch
        known = {} if self._disturbed is None else self._disturbed[2]
        if not known or max(known.values()) > MOST_CARRIED:
            return {}
        return {("gradient", name): answer.sizes[name] * part for name, part in known.items()}

    def _of_disturbances(self, seen: Observation, batch: Tensors, answer: Answer) -> Doubts:
        """What rounding of a backward pass makes of the judge's answer."""
        if self._disturbed is None or self._disturbed[0]() is not answer:
            parameters, rows = self._values(seen.before), self._rows(batch)
            shown = seen.shown or {}
            network = self._judge.network
            at_once = 1 if is_huge(network) or network.has_own_kinds else len(allowed_cpus())

            def ask(draw: int) -> Answer:
                return self._judge.sized(sample_count(rows), rounding=draw).gradient(parameters, rows, shown)

            found = of_disturbances(answer, ask, at_once)
            parts = {
                name: found["gradient", name] / size if size else math.inf
                for name, size in answer.sizes.items()
            }
            self._disturbed = weakref.ref(answer), found, parts
        return self._disturbed[1]

    def _of_shifts(self, seen: Observation, batch: Tensors, answer: Answer) -> Doubts:
        """That, or what last places of the parameters and of what goes into normalizations make of it: of
        nothing that a rectifier or a maximum decides by, so that no decision turns on the way."""
        parameters, shown = self._values(seen.before), seen.shown or {}
        trained = ordered(parameters, self._expected.initial)
        moved = {f"of {name}": shown[name] for name in normalized(self._expected.layers) if name in shown}

        def ask(at: Tensors) -> Answer:
            there = {name: at.get(f"of {name}", values) for name, values in shown.items()}
            return self._judge.gradient({**parameters, **{name: at[name] for name in trained}}, batch, there)

        found = of_shifts(answer, {**trained, **moved}, ask)
        for kind, made in (("activation", answer.activation), ("state", answer.state)):
            for name, values in made.items():
                found[kind, name] = min(found[kind, name], MOST_DOUBTED_SHOWN * norm(values))
        found["loss", ""] = min(found["loss", ""], MOST_DOUBTED_SHOWN * abs(answer.loss))
        return largest(self._of_disturbances(seen, batch, answer), found)

    def _gradients_of(self, seen: Observation, answer: Answer) -> Tensors:
        """The contender's, as it showed them or as its step tells them; none where they are not finite."""
        shown: Tensors = {}
        for name in answer.gradient:
            if seen.gradient is not None:
                mine = seen.gradient[name]
            else:
                implied = implied_gradient(seen, name, self._rule, answer.gradient, answer.sizes[name])
                if implied is None:
                    continue
                mine = implied
            if not np.all(np.isfinite(mine)):
                return {}
            shown[name] = mine
        return shown

    def _rows(self, batch: Tensors) -> Tensors:
        """Of the samples that are judged."""
        places = samples(batch, self._judge.network.batch_size)
        return batch if places is None else rows_of(batch, places)

    def _by_terms(
        self, seen: Observation, batch: Tensors, answer: Answer, terms: Terms, found: list[Comparison]
    ) -> list[Comparison]:
        """The same, or, if nothing failed but what may cancel, with that measured by what the samples add to
        it, if that is all there is to it."""
        if self._expected.couples_batch or not nothing_else(found, self._expected.cancelling):
            return found
        again = self._comparisons(seen, batch, answer, terms=terms())
        return again if all(one.passed for one in again) else found

    def _comparisons(
        self,
        seen: Observation,
        batch: Tensors,
        answer: Answer,
        known: Doubts | None = None,
        terms: Mapping[str, float] | None = None,
    ) -> list[Comparison]:
        """`known`: by how much the loss and each tensor may differ besides."""
        value, slope, known = self.precision.value, self._slope(answer.loss), known or {}
        sizes, limits = self._sizes_and_limits(answer, known, terms or {})
        found: list[Comparison] = []
        if seen.shown is not None and seen.shown is not self._heard:
            rows = self._rows(batch)
            times = sample_count(batch) / sample_count(rows)
            layers, parameters = self._expected.layers, self._values(seen.before)
            found += layer_comparisons(seen, layers, rows, parameters, answer, self.precision, times, known)
        mine = math.nan if seen.loss is None else seen.loss
        growth = known.get(("loss", ""), 0.0) / (abs(answer.loss) * self.precision.loss or 1.0)
        found.append(self._loss(named(seen, "loss"), mine, answer.loss, max(1.0, growth)))
        if seen.gradient is not None:
            for name in reversed(list(self._expected.initial)):
                pair, size = (seen.gradient[name], answer.gradient[name]), sizes[name] or 1.0
                words = named(seen, f"gradient {name}")
                found.append(tensor_comparison(words, *pair, limits[name] / size, size))
        if seen.after is not None:
            for change in changes(
                seen, answer.gradient, self._rule, slope, {name: one / slope for name, one in limits.items()}
            ):
                size = change.size if change.size > 0 else 1.0
                name = named(seen, f"{change.kind} {change.name}")
                found.append(comparison(name, "relative_l2", change.error / size, change.limit / size))
        behind = seen.moved if seen.after is None else seen.after.layer_state
        if behind is None:
            return found
        for name in self._expected.states:
            sums = 4 + self._expected.statistics.get(name, 0.0)
            besides = known.get(("state", name), 0.0) + UNIT * sums * statistic_size(answer.state, name)
            found.append(state_comparison(seen, behind, name, answer.state, value, besides))
        return found

    def _sizes_and_limits(
        self, answer: Answer, known: Doubts, terms: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """By what each gradient is measured, and how far it may be off, absolute."""
        sizes, limits = {}, {}
        for name in self._expected.initial:
            sizes[name] = max(answer.sizes[name], terms.get(name, 0.0))
            part = of_gradient(self._slope(answer.loss), self._expected.values.get(name, 0))
            doubt = known.get(("gradient", name), 0.0)
            most = doubt if doubt > sizes[name] else min(doubt, MOST_DOUBTED * sizes[name])
            limits[name] = part * sizes[name] + most
        return sizes, limits

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


def _most_off(found: Sequence[Comparison]) -> float:
    """By how many times what is allowed."""
    apart = (one.error / one.tolerance for one in found if one.error is not None and one.tolerance > 0)
    return max(apart, default=0.0)


def _is_same(one: Observation, other: Observation) -> bool:
    """Whether they were taken of the same batch from the same values, and show the same."""
    if not (one.fresh and other.fresh and (one.stream, one.row) == (other.stream, other.row)):
        return False
    pairs = [
        (one.before.parameter, other.before.parameter),
        (one.before.layer_state, other.before.layer_state),
    ]
    pairs.append((one.shown or {}, other.shown or {}))
    return all(
        mine is theirs
        or (mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine))
        for mine, theirs in pairs
    )
