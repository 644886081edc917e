"""The update rule, in double precision, and how far an honest step in single precision may be from it.

What each rule computes is agreement/update.py's. Here each step is judged on its own, from the contender's
own weights and states: what is compared are the *changes*, so that no error hides in the size of a weight. A
state is judged from the states before the step and the judge's gradient; the weight from the states that the
contender showed behind the step. Three things make an honest change inexact:

- its gradient, which is allowed some part of the judge's (relative L2, precision.py), and of the norm that
clips it as much again. How far that moves a state is the slope of the rule there. Where the step is
proportional to the gradient, its error is measured in gradients, so that a large divisor excuses nothing
elsewhere;
- rounding. A sum that is kept in f32 is off by at most u = 2^-24 of itself, element by element. A state is
allowed 4 u of all its terms, a step 8 u of itself, and the weight u (|w| + |w'|);
- the rule's own numbers, which are kept in f32 as well: each is off by u of itself. 1 - beta2^t makes much of
that, so four times as much is allowed where the number takes part in the step.

So a change far below the last place of its weight cannot be judged by the weight; its states still can. Where
a framework hides the velocities of plain SGD, the step before tells them: v = -(w - w_before) / rate, and the
rounding of those two weights, times the momentum, is allowed as well. Of every other rule the states must be
shown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import UNIT, VANISHING, Doubles, norm, pieces, sizes_of, wide
from timetrial.agreement.update import Rule, Update
from timetrial.questions.observed import Look, Observation, Tensors

SMALLEST = 2.0**-126  # what a processor that flushes subnormals may lose, absolute


@dataclass(frozen=True)
class Change:
    """How one tensor changed against how it should have: norms, all absolute."""

    kind: str  # the name of a state, or "parameter"
    name: str
    error: float
    limit: float
    size: float  # of the change that was expected


@dataclass(frozen=True)
class _Piece:
    """Of one parameter's step. `doubt`: how far rounding may have moved its velocity before it; `moved`, of
    the states too, as it should be. `slopes` as Update has them, of the states and of the step."""

    where: slice
    update: Update
    doubt: Doubles
    gradient: Doubles
    expected: Mapping[str, Doubles]
    moved: Doubles
    slopes: Mapping[str, Doubles]
    slope: Doubles


class _Squares(defaultdict[str, float]):
    """Euclidean norms, summed up piece by piece."""

    def __init__(self) -> None:
        super().__init__(float)

    def add(self, name: str, values: Doubles) -> None:
        self[name] += norm(values) ** 2

    def norm(self, name: str) -> float:
        return math.sqrt(self[name])


def changes(
    seen: Observation,
    gradient: Tensors,
    rule: Rule,
    tolerance: float,
    sizes: Mapping[str, float] | None = None,
) -> list[Change]:
    """Every change of a step, from the loss back. `gradient`: the judge's, at seen.before; `sizes`: what its
    errors are measured by (sizes_of). Where states before are not known, nothing is said of a parameter."""
    scale, sizes = rule.scale(gradient), sizes_of(gradient) if sizes is None else sizes
    found: list[Change] = []
    for name in reversed(list(gradient)):
        known = _known(seen, name, rule)
        if known is None:
            continue
        asked = seen, name, rule, known, scale, gradient[name], sizes[name], tolerance
        with np.errstate(all="ignore"):  # what is not finite comes out as such, and fails
            own = list(_changes_of(*asked, closely=False))
            if not all(one.error <= one.limit for one in own):
                own = list(_changes_of(*asked, closely=True))
        found += own
    return found


def _changes_of(
    seen: Observation,
    name: str,
    rule: Rule,
    known: _Known,
    scale: float,
    gradient: NDArray[Any],
    size: float,
    tolerance: float,
    *,
    closely: bool,
) -> Iterator[Change]:
    """Of one parameter. Not `closely`: all that rounding is allowed is that of the weight itself, which is
    quickly told, and mostly enough."""
    assert seen.after is not None
    after, sums = np.ravel(seen.after.parameter[name]), _Squares()
    steepest: dict[str, float] = defaultdict(float)
    flattest, shown = math.inf, set(_states(seen.after, name, rule))
    off = tolerance * scale * size * (1 if scale == 1 else 2)
    for one in _pieces(rule, known, scale, gradient, size, off):
        update = one.update
        if closely:
            terms = update.magnitudes(one.gradient)
            spread, step_spread = update.rounded_numbers(one.gradient, one.expected, one.moved)
        sums.add("doubt", one.doubt)
        for state, expected in one.expected.items():
            steepest[state] = float(np.maximum(steepest[state], np.max(one.slopes[state], initial=0.0)))
            if closely:
                sums.add(f"rounding {state}", 4 * UNIT * (terms[state] + np.abs(expected)) + spread[state])
            if state in shown:
                sums.add(f"error {state}", update.shown[state] - expected)
                sums.add(f"size {state}", expected - update.without_gradient(state))
        behind = wide(after[one.where])
        wrong = behind - update.weight + one.moved
        rounding = UNIT * (np.abs(update.weight) + np.abs(behind))
        if closely:
            rounding += 8 * UNIT * np.abs(one.moved) + step_spread
        sums.add("error", wrong)
        sums.add("rounding", rounding)
        sums.add("size", one.moved)
        flattest = float(np.minimum(flattest, np.min(one.slope, initial=math.inf)))
        if flattest > 0:  # where a state is shown, the step is its and depends on no gradient
            sums.add("error in gradients", wrong / one.slope)
            sums.add("rounding in gradients", rounding / one.slope)
            sums.add("size in gradients", one.moved / one.slope)
            sums.add("smallest in gradients", SMALLEST / one.slope)
    tiny = SMALLEST * math.sqrt(gradient.size)
    carried = float(rule.optimizer.get("momentum", 0.0)) * sums.norm("doubt")
    allowed = off + tiny + carried
    for state in rule.states:
        rounded = sums.norm(f"rounding {state}")
        if state in shown:
            limit = steepest[state] * off + rounded + carried + tiny
            yield Change(state, name, sums.norm(f"error {state}"), limit, sums.norm(f"size {state}"))
        else:
            allowed += rounded
    if gradient.size and flattest > 0:
        unit, limit = " in gradients", allowed + sums.norm("smallest in gradients")
    else:
        unit, limit = "", tiny
    limit += sums.norm(f"rounding{unit}")
    yield Change("parameter", name, sums.norm(f"error{unit}"), limit, sums.norm(f"size{unit}"))


def implied_gradient(
    seen: Observation, name: str, rule: Rule, gradient: Tensors, size: float
) -> Doubles | None:
    """The gradient that a step must have used, before clipping; `gradient`: the judge's; `size`: what errors
    of this one are measured by. None where its states are not known."""
    known = _known(seen, name, rule)
    if known is None:
        return None
    assert seen.after is not None
    scale, after = rule.scale(gradient), np.ravel(seen.after.parameter[name])

    def parts() -> Iterator[_Piece]:
        return _pieces(rule, known, scale, gradient[name], size)

    with np.errstate(all="ignore"):
        shown = _states(seen.after, name, rule)
        linear = next((state for state in rule.states if state in shown and _is_even(parts(), state)), None)
        used = np.empty(np.shape(gradient[name]))
        flat = used.reshape(-1)
        for one in parts():
            if linear is not None:
                wrong = (one.update.shown[linear] - one.expected[linear]) / one.slopes[linear]
            elif np.min(one.slope, initial=math.inf) > 0:
                wrong = (one.update.weight - wide(after[one.where]) - one.moved) / one.slope
            else:
                return None
            flat[one.where] = (one.gradient + wrong) / scale
    return used


def _is_even(parts: Iterator[_Piece], state: str) -> bool:
    """Whether a state is linear in the gradient, and so tells it in every element alike."""
    least, most = math.inf, -math.inf
    for one in parts:
        least = float(np.minimum(least, np.min(one.slopes[state], initial=math.inf)))
        most = float(np.maximum(most, np.max(one.slopes[state], initial=-math.inf)))
    return most - least <= 1e-6 * most


def _pieces(
    rule: Rule, known: _Known, scale: float, gradient: NDArray[Any], size: float, off: float = 0.0
) -> Iterator[_Piece]:
    """`size`: what errors of the gradient are measured by; `off`: how large one may be, of the scaled one. By
    so much farther from 0 its slopes are taken: a square moves by that of the error where next to nothing is
    left of the gradient."""
    away = off / math.sqrt(gradient.size or 1)
    flat, typical = np.ravel(gradient), 0.0
    if not rule.is_linear:
        own = scale * norm(gradient)
        typical = (own if own > VANISHING * scale * size else scale * size) / math.sqrt(gradient.size or 1)
    for where in pieces(flat.size):
        update, doubt = known(where)
        fresh = scale * wide(flat[where])
        expected, moved = update.outcome(fresh)
        slopes, slope = update.slopes(fresh, typical, away)
        yield _Piece(where, update, doubt, fresh, expected, moved, slopes, slope)


def lacking(seen: Observation, rule: Rule) -> str | None:
    """The name of a state without which a step of this rule cannot be judged, if the contender hides it."""
    if rule.may_hide:
        return None
    for moment in (None if seen.fresh else seen.before, seen.after):
        for name in moment.parameter if moment else ():
            for state in rule.states:
                if f"{name}.{state}" not in (moment.state if moment else {}):
                    return f"{name}.{state}"
    return None


# The step of a piece of a parameter, and how far rounding may have moved its velocity before it.
_Known = Callable[[slice], tuple[Update, Doubles]]


def _known(seen: Observation, name: str, rule: Rule) -> _Known | None:
    """None where states before a step are not known."""
    assert seen.after is not None
    of, weight = rule.for_parameter(name), np.ravel(seen.before.parameter[name])
    before, shown = _states(seen.before, name, of), _states(seen.after, name, of)
    is_first = seen.fresh or not of.states
    earlier = None
    if not is_first and len(before) != len(of.states):
        if seen.earlier is None or not of.may_hide or not of.rate(seen.step - 1):
            return None
        earlier = np.ravel(seen.earlier.parameter[name])

    def piece(where: slice) -> tuple[Update, Doubles]:
        now = wide(weight[where])
        doubt, states = np.zeros_like(now), {state: wide(values[where]) for state, values in before.items()}
        if is_first:
            states = {state.name: np.zeros_like(now) for state in of.kind.states}
        elif earlier is not None:
            rate, then = of.rate(seen.step - 1), wide(earlier[where])
            states = {"velocity": (then - now) / rate}
            doubt = UNIT * (np.abs(now) + np.abs(then)) / rate
        behind = {state: wide(values[where]) for state, values in shown.items()}
        return Update(of, of.numbers(seen.step), now, states, behind), doubt

    return piece


def _states(look: Look, name: str, rule: Rule) -> dict[str, NDArray[Any]]:
    named = {state: look.state.get(f"{name}.{state}") for state in rule.states}
    return {state: np.ravel(values) for state, values in named.items() if values is not None}
