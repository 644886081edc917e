"""Does this backend compute this network? What it showed against what the judge gets from the same values.

Every observation is judged by itself: loss and gradients at the contender's own parameters, and the change of
parameters and states by the rule (rule.py). There are no allowances: what a rounded decision or a tie may
have turned must be shown (flips.py), and stands in the notes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from timetrial import npy
from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32, REDUCED, Precision, is_reduced
from timetrial.agreement.rounding import TIMES, WORDS, Doubt, doubt_of_batch, may_magnify
from timetrial.agreement.sizes import UNIT, distance, norm, size_of
from timetrial.agreement.update import Rule
from timetrial.control.arithmetic import REDUCED_NOTE
from timetrial.optimizers import state_names
from timetrial.proof.cancelling import Terms, may_cancel, nothing_else, sizes_of_terms
from timetrial.proof.coupled import explain_coupled
from timetrial.proof.flips import FIRST_TURNED, every_tie, explain, fits, turns
from timetrial.proof.hints import hint
from timetrial.proof.judge import JUDGING, TIES, Answer, Judge, Ties
from timetrial.proof.parts import evenly
from timetrial.proof.rule import changes, implied_gradient, lacking
from timetrial.proof.ways import Guide, relative_distance
from timetrial.questions.observed import Batches, Look, Observation, Plain, Tensors, rows_of
from timetrial.records.model import Comparison, Parity
from timetrial.workloads import Prepared

FIRST_LOSSES = "workload: "  # how comparisons of the losses on the workload's own batches begin

Measure = Literal["relative", "relative_l2"]


def unproven(reason: str, losses: Sequence[float] = ()) -> Parity:
    """No judgment: the backend computes no network, or nobody could judge it."""
    return Parity(status="unproven", reason=reason, losses=list(losses))


@dataclass(frozen=True)
class Expected:
    """What the workload says: parameters and states of layers with their initial values, and layers with
    their shapes, in the network's order; the optimizer as in the job file; the batches of its streams.
    `undecayed`: parameters that its weight decay is not for. `couples_batch`: what becomes of a sample
    depends on the others of its batch. `output`: the node that the loss reads."""

    initial: Tensors
    nodes: Mapping[str, tuple[int, ...]]
    optimizer: Mapping[str, Any]
    batches: Batches
    states: Tensors = field(default_factory=dict)
    undecayed: frozenset[str] = frozenset()
    couples_batch: bool = False
    carries_state: bool = False
    output: str = ""

    @functools.cached_property
    def cancelling(self) -> frozenset[str]:
        """Parameters whose gradients may cancel."""
        return may_cancel(self.initial, self.output)


def expected_of(prepared: Prepared) -> Expected:
    """What a prepared workload says."""
    nodes = prepared.job["network"]["nodes"]
    of_nodes = [one for node in nodes for one in node["parameters"]]

    def initial(role: str) -> Tensors:
        return {one["name"]: npy.mapped(one["file"]) for one in of_nodes if one["role"] == role}

    return Expected(
        initial=initial("parameter"),
        nodes={node["name"]: tuple(node["shape"]) for node in nodes if node["kind"] != "input"},
        optimizer=prepared.job["optimizer"],
        batches=Batches(prepared.job["streams"]),
        states=initial("state"),
        undecayed=frozenset(one["name"] for one in of_nodes if not one["decays"]),
        couples_batch=prepared.network is not None and prepared.network.couples_batch,
        carries_state=prepared.network is not None and prepared.network.carries_state,
        output=prepared.job["network"]["output"],
    )


def compare(
    observations: Sequence[Observation],
    judge: Judge,
    expected: Expected,
    *,
    plain: Plain | None = None,
    losses: Sequence[float] = (),
    prefix: str = "",
    precision: Precision = F32,
    cancelled: Callable[[], bool] = lambda: False,
) -> Parity:
    """The verdict. `losses`: of the first steps on the workload's own batches, from the initial values.
    KeyboardInterrupt once it is `cancelled`: a large network may take minutes."""
    with JUDGING:
        court = _Court(judge, expected, precision)
        for seen in observations:
            if cancelled():
                raise KeyboardInterrupt
            wrong = _form(seen, expected)
            if wrong is not None:
                tensor, reason = f"{prefix}{wrong[0]}", f"{prefix}{wrong[1]}"
                return Parity(
                    status="failed", judge=judge.name, tensor=tensor, reason=reason,
                    comparisons=_prefixed(court.comparisons, prefix), losses=list(losses),
                )  # fmt: skip
            court.hear(seen)
        if plain is not None:
            court.follow(plain, _forced(observations, plain) if expected.states else ())
        if losses:
            constant = plain is None and not any(one.after for one in observations)
            is_large = plain is not None and plain.after is None
            court.first_losses(losses, steps=1 if is_large else len(losses), constant=constant)
    return _verdict(court, list(losses), prefix)


def merged(first: Parity, second: Parity) -> Parity:
    """One verdict of two: of those that failed the one that says most; passed only where both did."""
    failed = [one for one in (first, second) if one.status == "failed"]
    # An activation or a gradient names the layer that is wrong; a loss or a change only says that one is.
    failed.sort(key=lambda one: not any(kind in (one.tensor or "") for kind in ("activation ", "gradient ")))
    unproven = [one for one in (first, second) if one.status == "unproven"]
    named = next(iter([*failed, *unproven]), max((first, second), key=lambda one: one.max_error or 0.0))
    return first.model_copy(
        update={
            "judge": " and ".join(dict.fromkeys(one.judge for one in (first, second) if one.judge)) or None,
            "status": named.status,
            "max_error": named.max_error,
            "tensor": named.tensor,
            "reason": named.reason,
            "notes": sorted({*first.notes, *second.notes}),
            "turned": [*first.turned, *second.turned],
            "comparisons": [*first.comparisons, *second.comparisons],
        }
    )


def compare_losses(timed: Sequence[float], proof: Parity) -> str | None:
    """The first losses of a timed launch against its proof's; words for the first that differs by more than
    two roundings of the same steps may."""
    for step, (mine, proven) in enumerate(zip(timed, proof.losses, strict=False)):
        error, tolerance = relative_distance(mine, proven), F32.loss * GROWTH**step
        if not error <= tolerance:
            return (
                f"the loss of step {step + 1} is {mine:.9g}, in the proof it was {proven:.9g} "
                f"(relative error {error:.2g}, tolerance {tolerance:.2g})"
            )
    return None


class _Court:
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
        if seen.fresh:
            self.comparisons += _start(seen, self._expected)
        if seen.gradient is not None or seen.after is not None:
            self._hear_gradient(seen)
        if seen.kept is not None:
            self.comparisons += _kept(seen, seen.kept)
        if seen.output is not None:
            batch = self._expected.batches.batch(seen.stream, seen.row)
            judged = self._judge.output(self._values(seen.before), batch)
            self.comparisons.append(_tensor(_name(seen, "output"), seen.output, judged, self.precision.value))

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
        named = self._judge, parameters, batch, self._expected.cancelling
        terms = functools.cache(functools.partial(sizes_of_terms, *named))
        measured = self._by_terms(seen, answer, terms, found)
        if measured is not found:
            return answer, measured
        doubt = self._doubt(parameters, batch)
        for ties in sorted(TIES, key=lambda one: one != self._ties):
            for explained, words in self._explained(seen, answer, parameters, batch, ties, doubt):
                again = self._gradient_comparisons(seen, explained)
                again = self._by_terms(seen, explained, terms, again)
                # Only what explains everything counts as an explanation.
                is_explained = bool(words) and all(one.passed for one in again if _is_of_gradient(one))
                if doubt is not None and not (is_explained and all(one.passed for one in again)):
                    again = self._gradient_comparisons(seen, explained, doubt)
                    words, is_explained = [*words, WORDS], all(one.passed for one in again)
                if is_explained:
                    self._ties = ties
                    self.turned += [_name(seen, one) for one in words]
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
        value, slope = self.precision.value, self.precision.gradient
        sizes = {
            name: max(size_of(answer.gradient, name), (terms or {}).get(name, 0.0))
            for name in self._expected.initial
        }
        doubt = doubt or Doubt()
        sizes = {name: doubt.allowed_of(name, size, slope) / slope for name, size in sizes.items()}
        kept = TIMES if doubt.least else 1.0  # last layers of few images are off by two roundings
        found = [
            _measured(
                _name(seen, f"activation {node}"),
                seen.activation[node],
                answer.activation[node],
                max(kept * norm(answer.activation[node]), doubt.allowed("activation", node) / value),
                value,
            )
            for node in self._expected.nodes
            if seen.activation is not None and node in seen.activation and node in answer.activation
        ]
        mine = math.nan if seen.loss is None else seen.loss
        growth = TIMES * doubt.loss / (abs(answer.loss) * self.precision.loss or 1.0)
        found.append(self._loss(_name(seen, "loss"), mine, answer.loss, max(1.0, growth)))
        if seen.gradient is not None:
            for name in reversed(list(self._expected.initial)):
                pair = seen.gradient[name], answer.gradient[name]
                found.append(_measured(_name(seen, f"gradient {name}"), *pair, sizes[name], slope))
        if seen.after is not None:
            for change in changes(seen, answer.gradient, self._rule, slope, sizes):
                size = change.size if change.size > 0 else 1.0
                name = _name(seen, f"{change.kind} {change.name}")
                found.append(_comparison(name, "relative_l2", change.error / size, change.limit / size))
        behind = seen.moved if seen.after is None else seen.after.layer_state
        for name in self._expected.states if behind else ():
            judged = answer.state[name]
            doubted = doubt.allowed("state", name) + 4 * UNIT * _spread(answer.state, name)
            found.append(_layer_state(seen, behind, name, judged, kept * value, doubted))
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
            tolerance = (TIMES if self._expected.states else 1) * self.precision.gradient
            doubted = {name: doubt.allowed("gradient", name) / TIMES for name in shown} if doubt else {}
            asked = self._judge, parameters, batch, shown, tolerance, ties, doubted
            corrected, words = explain_coupled(*asked, whole=self._expected.carries_state)
            yield replace(answer, gradient=corrected) if words else answer, words
            return
        residual = {
            name: np.asarray(mine, np.float64) - answer.gradient[name] for name, mine in shown.items()
        }
        possible = [every_tie(self._judge, parameters, batch)] if ties == "all" else []
        left = turns(self._judge, parameters, batch, ties)
        for many in (FIRST_TURNED, None):
            possible += islice(left, many)
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
            found = _tensor(name, ends[0], ends[1], self.precision.way)
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
        tolerance = self.precision.loss
        return Guide(
            self._judge, self._expected.batches, self._rule, start, self._ties, states, tolerance=tolerance
        )

    def _loss(self, name: str, mine: float, theirs: float, growth: float = 1.0) -> Comparison:
        return _comparison(name, "relative", relative_distance(mine, theirs), self.precision.loss * growth)


def _verdict(court: _Court, losses: list[float], prefix: str) -> Parity:
    failed = next((one for one in court.comparisons if not one.passed), None)
    within = [one for one in court.comparisons if one.error is not None and one.tolerance > 0]
    worst = max(within, key=lambda one: (one.error or 0.0) / one.tolerance, default=None)
    named = failed or worst
    reduced = [REDUCED_NOTE] if court.precision is REDUCED and is_reduced(court.comparisons) else []
    reason = None
    if failed is not None:
        reason = prefix + _reason(failed, court.hints.get(failed.tensor))
    return Parity(
        status="failed" if failed else "passed",
        judge=court._judge.name,
        max_error=named.error if named else None,
        tensor=prefix + named.tensor if named else None,
        reason=reason,
        notes=sorted({*reduced, *("ties" if " ties" in one else "flips" for one in court.turned)}),
        turned=[prefix + one for one in court.turned],
        comparisons=_prefixed(court.comparisons, prefix),
        losses=losses,
    )


def _prefixed(comparisons: Sequence[Comparison], prefix: str) -> list[Comparison]:
    return [one.model_copy(update={"tensor": prefix + one.tensor}) for one in comparisons]


def _forced(observations: Sequence[Observation], plain: Plain) -> list[float]:
    """The losses of the first steps of the same stream from the initial values, each looked into."""
    found: list[float] = []
    for seen in observations:
        is_next = seen.step == seen.row == len(found) and seen.fresh == (not found)
        if is_next and seen.stream == plain.stream and seen.after is not None and seen.loss is not None:
            found.append(seen.loss)
    return found


def _way(end: Tensors, start: Tensors) -> NDArray[np.float64]:
    """Of all parameters, one behind the other."""
    return np.concatenate([(np.asarray(end[name], np.float64) - start[name]).ravel() for name in start])


def _wide(tensors: Tensors) -> Tensors:
    return {name: np.asarray(values, np.float64) for name, values in tensors.items()}


def _layer_state(
    seen: Observation, behind: Tensors, name: str, judged: NDArray[Any], tolerance: float, doubted: float
) -> Comparison:
    """Change against change; a state that is kept in f32 is off by rounding."""
    before = np.asarray(seen.before.layer_state[name], np.float64)
    mine = np.asarray(behind[name], np.float64)
    size = norm(judged - before) or 1.0
    limit = tolerance * size + 4 * UNIT * (norm(judged) + norm(before)) + doubted
    return _comparison(_name(seen, f"state {name}"), "relative_l2", norm(mine - judged) / size, limit / size)


def _spread(states: Tensors, name: str) -> float:
    """Of the values of which a state is the mean: one that is 0, since what goes into the layer has been
    normalized, keeps their rounding."""
    layer, _, own = name.rpartition(".")
    variance = states.get(f"{layer}.running_var") if own == "running_mean" else None
    return 0.0 if variance is None else norm(np.sqrt(np.maximum(variance, 0.0)))


def _ordered(mine: Tensors, initial: Tensors) -> Tensors:
    return {name: mine[name] for name in initial}


def _name(seen: Observation, what: str) -> str:
    return f"{seen.name}: {what}" if seen.name else what


def _is_of_gradient(one: Comparison) -> bool:
    return any(f"{word} " in one.tensor for word in ("gradient", "parameter", *state_names()))


def _start(seen: Observation, expected: Expected) -> Iterator[Comparison]:
    """Right after a reset everything is as the workload says, to the last bit; only what differs is
    listed."""
    before = seen.before
    for mine, initial in ((before.parameter, expected.initial), (before.layer_state, expected.states)):
        for name, values in initial.items():
            if not np.array_equal(mine[name], values):
                error = relative_l2(mine[name], values)
                yield _comparison(_name(seen, f"initial value {name}"), "relative_l2", error, 0.0)
    for name, values in seen.before.state.items():
        if np.any(values):
            error = norm(values.astype(np.float64))
            yield _comparison(_name(seen, f"initial {_state(name)}"), "relative_l2", error, 0.0)


def _state(name: str) -> str:
    """As people read it: "velocity fc2.bias"."""
    parameter, _, state = name.rpartition(".")
    return f"{state} {parameter}"


def _form(seen: Observation, expected: Expected) -> tuple[str, str] | None:
    """Names and shapes, before any value."""
    shapes = {name: tensor.shape for name, tensor in expected.initial.items()}
    for node, activation in (seen.activation or {}).items():
        if activation.shape != expected.nodes.get(node, activation.shape):
            words = f"activation {node}: shape {activation.shape}, expected {expected.nodes[node]}"
            return f"activation {node}", words
    groups: list[tuple[str, Tensors]] = [("parameter", seen.before.parameter)]
    if seen.gradient is not None:
        groups.append(("gradient", seen.gradient))
    if seen.after is not None:
        groups.append(("parameter", seen.after.parameter))
    for kind, mine in groups:
        for name, shape in shapes.items():
            if name not in mine:
                have = ", ".join(mine) or "none"
                return name, f"{name}: the contender has no {kind} of this name (it has {have})"
            if mine[name].shape != shape:
                return name, f"{name}: shape {mine[name].shape}, expected {shape} ({kind})"
        extra = [name for name in mine if name not in shapes]
        if extra:
            return extra[0], f"{extra[0]}: the contender has this {kind}, the network does not"
    for moment in [one for one in (seen.before, seen.after) if one is not None]:
        for name, values in expected.states.items():
            if name not in moment.layer_state:
                words = "the contender does not show this state of a layer: no step can be judged without"
                return name, f"{name}: {words}"
            shape = moment.layer_state[name].shape
            if shape != values.shape:
                return name, f"{name}: shape {shape}, expected {values.shape} (state)"
        for name, tensor in moment.state.items():
            parameter, _, state = name.rpartition(".")
            if parameter in shapes and tensor.shape != shapes[parameter]:
                words = f"{parameter}: shape {tensor.shape}, expected {shapes[parameter]} ({state})"
                return parameter, words
    hidden = lacking(seen, Rule.of(expected.optimizer)) if seen.after is not None else None
    if hidden is not None:
        rule = expected.optimizer["name"]
        return hidden, f"the contender does not show {hidden}: no step of {rule} can be judged without"
    return None


def _kept(seen: Observation, kept: Look) -> Iterator[Comparison]:
    """What an evaluation changed, which must be nothing, to the last bit; only what differs is listed."""
    groups = (
        ("parameter", seen.before.parameter, kept.parameter),
        ("", seen.before.state, kept.state),
        ("state", seen.before.layer_state, kept.layer_state),
    )
    for kind, before, behind in groups:
        for name, values in before.items():
            if name in behind and not np.array_equal(values, behind[name]):
                error = relative_l2(behind[name], values)
                what = f"{kind} {name}" if kind else _state(name)
                yield _comparison(_name(seen, f"{what} that it changed"), "relative_l2", error, 0.0)


def _tensor(name: str, mine: NDArray[Any], theirs: NDArray[Any], tolerance: float) -> Comparison:
    error = relative_l2(mine, theirs) if mine.shape == theirs.shape else math.nan
    return _comparison(name, "relative_l2", error, tolerance)


def _measured(
    name: str, mine: NDArray[Any], theirs: NDArray[Any], size: float, tolerance: float
) -> Comparison:
    if mine.shape != theirs.shape:
        return _comparison(name, "relative_l2", math.nan, tolerance)
    return _comparison(name, "relative_l2", distance(mine, theirs) / (size or 1.0), tolerance)


def _comparison(name: str, measure: Measure, error: float, tolerance: float) -> Comparison:
    finite = math.isfinite(error)
    return Comparison(
        tensor=name,
        measure=measure,
        error=error if finite else None,
        tolerance=tolerance,
        passed=finite and error <= tolerance,
    )


def relative_l2(mine: NDArray[Any], theirs: NDArray[Any]) -> float:
    """|mine - theirs| / |theirs|, in double precision; the plain distance where |theirs| is 0."""
    size, apart = norm(theirs), distance(mine, theirs)
    return apart / size if size > 0 else apart


def _reason(first: Comparison, words: str | None) -> str:
    error = "not finite" if first.error is None else f"{first.error:.2g}"
    measure = first.measure.replace("_l2", " L2")
    said = f"{first.tensor}: {measure} error {error}, tolerance {first.tolerance:.2g}"
    return f"{said}; {words}" if words else said
