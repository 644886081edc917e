"""Does this backend compute this network? What it showed against what the judge gets from the same values.

Every observation is judged by itself (court.py): each layer at what the contender showed in front of it
(layers.py), loss and gradients at all of that and the contender's own parameters, and the change of
parameters and states by the rule (rule.py). A decision that was not what was shown must be found in the
gradients (decisions.py), and stands in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timetrial.agreement.passes import GROWTH
from timetrial.agreement.precision import F32, REDUCED, Precision, is_reduced
from timetrial.control.arithmetic import REDUCED_NOTE
from timetrial.proof.comparisons import reason_of, relative_distance
from timetrial.proof.court import Court
from timetrial.proof.expected import Expected, wrong_form
from timetrial.proof.judge import Judge, asking
from timetrial.proof.parts import samples
from timetrial.questions.observed import Observation, Plain
from timetrial.records.model import Comparison, Parity


def unproven(reason: str, losses: Sequence[float] = ()) -> Parity:
    """No judgment: the backend computes no network, or nobody could judge it."""
    return Parity(status="unproven", reason=reason, losses=list(losses))


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
    failed: Callable[[Observation], None] = lambda seen: None,
) -> Parity:
    """The verdict. `losses`: of the first steps on the workload's own batches, from the initial values.
    `failed` is told what was seen where something is wrong for the first time, and may raise.
    KeyboardInterrupt once it is `cancelled`: a large network may take minutes."""
    with asking():
        court = Court(judge, expected, precision)
        for seen in observations:
            if cancelled():
                raise KeyboardInterrupt
            batch = expected.batches.batch(seen.stream, seen.row)
            places = samples(batch, judge.network.batch_size) if seen.shown else None
            wrong = wrong_form(seen, expected, None if places is None else len(places))
            if wrong is not None:
                tensor, reason = f"{prefix}{wrong[0]}", f"{prefix}{wrong[1]}"
                return Parity(
                    status="failed", judge=judge.name, tensor=tensor, reason=reason,
                    comparisons=_prefixed(court.comparisons, prefix), losses=list(losses),
                )  # fmt: skip
            passed = court.passed
            court.hear(seen)
            if passed and not court.passed:
                failed(seen)
        passed = court.passed
        if plain is not None:
            court.repeated(plain)
        if losses:
            court.first_losses(losses, _first_losses(observations, "train"))
        if passed and not court.passed and observations:
            failed(observations[-1])
    parity = _verdict(court, judge, list(losses), prefix)
    if parity.status == "passed" and not prefix and court.never_held:
        name = court.never_held[0]
        words = f"gradient {name}: wherever one was looked at, rounding in f32 may have left nothing of it"
        return parity.model_copy(update={"status": "unproven", "tensor": f"gradient {name}", "reason": words})
    return parity


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


def compare_losses(timed: Sequence[float], proof: Parity, *, turned: bool = False) -> str | None:
    """The first losses of a timed launch against its proof's; words for the first that differs by more than
    two roundings of the same steps may. `turned`: where a decision may have turned in the first step, which
    carries on as much as another step."""
    for step, (mine, proven) in enumerate(zip(timed, proof.losses, strict=False)):
        error, tolerance = (
            relative_distance(mine, proven),
            F32.loss * GROWTH ** (step + (turned and step > 0)),
        )
        if not error <= tolerance:
            return (
                f"the loss of step {step + 1} is {mine:.9g}, in the proof it was {proven:.9g} "
                f"(relative error {error:.2g}, tolerance {tolerance:.2g})"
            )
    return None


def _verdict(court: Court, judge: Judge, losses: list[float], prefix: str) -> Parity:
    failed = next((one for one in court.comparisons if not one.passed), None)
    within = [one for one in court.comparisons if one.error is not None and one.tolerance > 0]
    worst = max(within, key=lambda one: (one.error or 0.0) / one.tolerance, default=None)
    named = failed or worst
    reduced = [REDUCED_NOTE] if court.precision is REDUCED and is_reduced(court.comparisons) else []
    reason = None
    if failed is not None:
        reason = prefix + reason_of(failed, court.hints.get(failed.tensor))
    return Parity(
        status="failed" if failed else "passed",
        judge=judge.name,
        max_error=named.error if named else None,
        tensor=prefix + named.tensor if named else None,
        reason=reason,
        notes=sorted({*reduced, *("ties" for one in court.turned if " ties" in one)}),
        turned=[prefix + one for one in court.turned],
        comparisons=_prefixed(court.comparisons, prefix),
        losses=losses,
    )


def _prefixed(comparisons: Sequence[Comparison], prefix: str) -> list[Comparison]:
    return [one.model_copy(update={"tensor": prefix + one.tensor}) for one in comparisons]


def _first_losses(observations: Sequence[Observation], stream: str) -> list[float]:
    """Of the first batches of a stream, from the initial values, each looked into."""
    found: list[float] = []
    for seen in observations:
        is_next = seen.stream == stream and seen.row == len(found) and seen.loss is not None
        if is_next and (seen.after is None or seen.step == len(found)):
            found.append(float(seen.loss or 0.0))
    return found
