"""What is asked of a contender to prove it: every part of its work, each from values that it has just shown.

No step is compared with a step of somebody else's run: parameters and states are dumped, one step is taken,
and they are dumped again; the judge does the same step from the same values. Nothing grows from step to step,
and no error hides behind an earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from timetrial.questions.observed import Contact, Look, Observation, Plain, Tensors, look

FIRST_CALLS = ("gradient", "outputs")  # the first of these is the first that computes: it compiles
# Batches of which the gradient is taken at the initial values; the names say how they differ.
GRADIENT_BATCHES = {"proof": "", "proof2": "second batch", "proof3": "one label"}
FORCED_STEPS = 3  # of the proof batches, from the initial values
PLAIN_STEPS = 5  # of which only the losses are seen
# Of the workload's own data, before steps of it are judged: velocities have grown. With the first three, what
# goes wrong in every n-th step is seen for any n up to UNSEEN_STEPS + OWN_STEPS.
UNSEEN_STEPS, OWN_STEPS = 7, 8
# Of a network whose parameters are larger together only two steps are judged: the dumps of a whole sequence
# are some twenty times as large, and stay below 200 MB.
LARGE_BYTES = 9_000_000


@dataclass
class Proof:
    """What one contender showed. `deterministic`: whether five steps, taken twice from the same values, gave
    the same bits; None where nobody looked. `losses`: of the first steps on the workload's own batches."""

    observations: list[Observation] = field(default_factory=list)
    plain: Plain | None = None
    losses: list[float] = field(default_factory=list)
    deterministic: bool | None = None


def run_proof(task: str, contact: Contact, *, own_data: bool = True, is_large: bool = False) -> Proof:
    """The sequence of `task`. Without `own_data` only what needs no more than the proof's batches.
    `is_large`: fewer steps are shown."""
    if task == "forward":
        evaluated = _evaluated(contact, _initial(contact), fresh=True)
        return Proof([evaluated, *timed_observations(task, contact, "")])
    contact.stream("proof")
    contact.reset()
    first = look(contact)
    proof = Proof(_gradients(contact, first))
    first = _back_to(contact, first)
    if task == "gradient":
        proof.observations += timed_observations(task, contact, "")
        first = _back_to(contact, first)
        proof.observations.append(_evaluated(contact, first, fresh=True))
        if own_data:
            contact.stream("train")
            proof.losses = contact.run(PLAIN_STEPS)
        return proof
    proof.observations.append(_evaluated(contact, first, fresh=True, name="first evaluation"))
    looks, steps = [first], FORCED_STEPS - is_large
    proof.observations += forced_steps(contact, looks, steps, stream="proof", number=0)
    proof.observations.append(_evaluated(contact, looks[-1], fresh=False))
    if not is_large:
        proof.observations += forced_steps(contact, looks, 2, stream="proof", number=steps, row=0)
    if not own_data:
        return proof
    _plain_steps(contact, first, proof, is_large=is_large)
    contact.stream("train")
    contact.reset()
    proof.losses = contact.run(PLAIN_STEPS)
    if not is_large:
        contact.run(UNSEEN_STEPS - PLAIN_STEPS)
        looks = [look(contact)]
        proof.observations += forced_steps(
            contact, looks, OWN_STEPS, stream="train", number=UNSEEN_STEPS, prefix="own data, "
        )
    return proof


def forced_steps(
    contact: Contact,
    looks: list[Look],
    steps: int,
    *,
    stream: str,
    number: int,
    prefix: str = "",
    row: int | None = None,
    since: int | None = None,
) -> list[Observation]:
    """So many steps of the current stream, each between two looks. `looks` ends with the one before them and
    gets those behind. `number`: of steps taken; 0 makes the first one fresh. `row`: of the stream's next
    batch, and `since`: of steps since the last reset, where these are not `number`."""
    found: list[Observation] = []
    first = number if row is None else row
    for step in range(steps):
        losses = contact.run(1)
        looks.append(look(contact))
        found.append(
            Observation(
                name=f"{prefix}step {number + step + 1}",
                stream=stream,
                row=first + step,
                before=looks[-2],
                fresh=number + step == 0,
                step=number + step if since is None else since + step,
                earlier=looks[-3] if len(looks) > 2 else None,
                loss=losses[-1] if losses else None,
                after=looks[-1],
            )
        )
    return found


def timed_observations(task: str, contact: Contact, prefix: str) -> list[Observation]:
    """Of the tasks gradient and forward: what two batches gave through the verb that is timed."""
    found = []
    for stream in ("proof", "proof2"):
        contact.stream(stream)
        before = _initial(contact)
        losses = contact.run(1)
        plain = Observation(
            f"{prefix}timed step on {stream}", stream, 0, before, fresh=not before.layer_state
        )
        if task == "forward":
            found.append(replace(plain, output=contact.predicted()))
        else:
            moved = contact.dump("state")
            found.append(replace(plain, loss=losses[-1], gradient=contact.dump("gradient"), moved=moved))
    return found


def end_observations(
    task: str, contact: Contact, steps: int, more: int = 0, since: int | None = None
) -> list[Observation]:
    """Behind the timed part of a launch that has taken `steps`: the next ones, through the very verb that was
    timed, on batches that it has never seen; and what it infers then. `more`: steps that nobody looks at
    before these, so that nothing can be right every n-th step only and be seen then. `since`: steps since the
    last reset, where that was not the beginning."""
    if task != "train":
        return timed_observations(task, contact, f"after {steps} steps, ")
    contact.stream("proof")
    if more:
        contact.run(more)
    looks = [look(contact)]
    behind = (steps if since is None else since) + more
    found = forced_steps(contact, looks, 2, stream="proof", number=steps + more, row=more, since=behind)
    name = f"evaluation after {steps + more + 2} steps"
    return [*found, _evaluated(contact, looks[-1], fresh=False, name=name)]


def _initial(contact: Contact) -> Look:
    return Look(contact.dump("parameter"), layer_state=contact.dump("state"))


def _back_to(contact: Contact, first: Look) -> Look:
    """To the initial values, where a gradient without update has moved something: what is there then."""
    if not first.layer_state:
        return first
    contact.reset()
    return look(contact)


def _gradients(contact: Contact, first: Look) -> list[Observation]:
    found = []
    for stream, name in GRADIENT_BATCHES.items():
        first = _back_to(contact, first)
        contact.stream(stream)
        loss = contact.gradient()
        # Only of the first batch: the layers are the same.
        activation = None if name else contact.dump("activation")
        gradient = contact.dump("gradient")
        found.append(
            Observation(
                name, stream, 0, first, fresh=True, loss=loss, activation=activation, gradient=gradient
            )
        )
    return found


def _evaluated(contact: Contact, now: Look, *, fresh: bool, name: str = "evaluation") -> Observation:
    """Inference on the first batch of `proof`, with which steps behind it begin again."""
    contact.stream("proof")
    output = contact.outputs()
    kept = look(contact) if now.state else _initial(contact)
    return Observation(name, "proof", 0, now, fresh=fresh, output=output, kept=kept)


def _plain_steps(contact: Contact, first: Look, proof: Proof, *, is_large: bool) -> None:
    """The same five steps twice, in one segment each; of a large network once, and their losses only."""
    ends: list[Tensors] = []
    losses: list[float] = []
    for _ in range(1 if is_large else 2):
        contact.stream("proof")
        contact.reset()
        losses = contact.run(PLAIN_STEPS)
        if not is_large:
            ends.append(contact.dump("parameter"))
    proof.plain = Plain("proof", losses, first, Look(ends[0]) if ends else None)
    if ends:
        proof.deterministic = all(_same_bits(one, other) for one, other in pairwise(ends))


def _same_bits(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
