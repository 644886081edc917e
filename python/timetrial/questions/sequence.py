"""What is asked of a contender to prove it: every part of its work, each from values that it has just shown.

No step is compared with a step of somebody else's run: parameters and states are dumped and what the layers
make of the next batch is shown, one step is taken, and parameters and states are dumped again; the judge
does the same step from the same values. Nothing grows from step to step, and no error hides behind an
earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from timetrial.questions.observed import Contact, Look, Observation, Plain, Tensors, look

FIRST_CALLS = ("gradient", "outputs")  # the first of these is the first that computes: it compiles
# Batches of which the gradient is taken at the initial values; the names say how they differ.
GRADIENT_BATCHES = {"proof": "", "proof2": "second batch", "proof3": "one label"}
FORCED_STEPS = 3  # of the proof batches, from the initial values, in front of an evaluation
PLAIN_STEPS = 5  # that are looked into one by one, and taken once more with a look behind the last alone
LOSSES = 5  # of the workload's own first batches, which timed launches repeat
# Of the workload's own data: the first LOSSES steps, and OWN_STEPS after UNSEEN_STEPS that nobody looks
# into, so that velocities have grown. What goes wrong in every n-th step is seen for any n up to all of
# these.
UNSEEN_STEPS, OWN_STEPS = 2, 8
# Of a network whose parameters are larger together only two steps are judged: the dumps of a whole sequence
# are some twenty times as large, and stay below 200 MB. Of its own first steps the third is the last in whose
# loss another part of the rule shows: it is behind a step with a velocity.
LARGE_BYTES = 9_000_000
STEPS_OF_LARGE, LOSSES_OF_LARGE = 2, 3

# Places of the samples that are judged, in the batch of a row of a stream; None: all of them.
Samples = Callable[[str, int], NDArray[np.int64] | None]


@dataclass
class Proof:
    """What one contender showed. `deterministic`: whether the plain steps, taken twice from the same values,
    gave the same bits; None where nobody looked. `losses`: of the first steps on the workload's own
    batches."""

    observations: list[Observation] = field(default_factory=list)
    plain: Plain | None = None
    losses: list[float] = field(default_factory=list)
    deterministic: bool | None = None


class Questions:
    """What is asked of one contender. `is_large`: fewer steps are shown."""

    def __init__(self, task: str, contact: Contact, samples: Samples, *, is_large: bool = False):
        self._task = task
        self._contact = contact
        self._samples = samples
        self._is_large = is_large

    def proof(self, *, own_data: bool = True) -> Proof:
        """Everything. Without `own_data` only what needs no more than the proof's batches."""
        contact, task = self._contact, self._task
        if task == "forward":
            evaluated = self._evaluated(_initial(contact), fresh=True)
            return Proof([evaluated, *self._timed("")])
        contact.stream("proof")
        contact.reset()
        first = look(contact)
        proof = Proof(self._gradients(first))
        first = self._back_to(first)
        if task == "gradient":
            proof.observations += self._timed("")
            first = self._back_to(first)
            proof.observations.append(self._evaluated(first, fresh=True))
            if own_data:
                contact.stream("train")
                if self._is_large:
                    proof.losses = contact.run(LOSSES_OF_LARGE)
                    return proof
                names = [f"own data, step {row + 1}" for row in range(LOSSES)]
                seen = [self._timed_gradient(name, "train", row) for row, name in enumerate(names)]
                proof.observations += seen
                proof.losses = [_loss_of(one) for one in seen]
            return proof
        proof.observations.append(self._evaluated(first, fresh=True, name="first evaluation"))
        looks = [first]
        if self._is_large:  # the first gradient showed what the first step begins with
            seen = self.forced(
                looks, STEPS_OF_LARGE, stream="proof", number=0, shown=proof.observations[0].shown
            )
        else:
            seen = self.forced(looks, FORCED_STEPS, stream="proof", number=0)
        proof.observations += [*seen, self._evaluated(looks[-1], fresh=False, stay=True)]
        if not self._is_large:
            more = self.forced(looks, PLAIN_STEPS - FORCED_STEPS, stream="proof", number=FORCED_STEPS)
            proof.observations += more
            seen += more
        self._plain(seen, looks, proof)
        if own_data:
            self._own_data(proof)
        return proof

    def end(self, steps: int, more: int = 0, since: int | None = None) -> list[Observation]:
        """Behind the timed part of a launch that has taken `steps`: the next ones, through the very verb
        that was timed, on batches that it has never seen; and what it infers then. `more`: steps that nobody
        looks at before these, so that nothing can be right every n-th step only and be seen then. `since`:
        steps since the last reset, where that was not the beginning."""
        if self._task != "train":
            return self._timed(f"after {steps} steps, ")
        contact = self._contact
        contact.stream("proof")
        if more:
            contact.run(more)
        looks = [look(contact)]
        behind = (steps if since is None else since) + more
        found = self.forced(looks, 2, stream="proof", number=steps + more, row=more, since=behind)
        name = f"evaluation after {steps + more + 2} steps"
        return [*found, self._evaluated(looks[-1], fresh=False, name=name)]

    def again(self, steps: int, *, looked: int) -> list[Observation]:
        """The first steps on the workload's own batches, each between two looks. Of those behind `looked`
        nothing but their losses and where they began is left to be judged."""
        contact = self._contact
        contact.stream("train")
        contact.reset()
        looks = [look(contact)]
        seen = self.forced(looks, min(looked, steps), stream="train", number=0, prefix="again, ")
        for step in range(len(seen), steps):
            contact.show(np.arange(1))  # one sample is enough for somebody who is honest when looked at
            before = looks[-1]
            loss = contact.run(1)[-1]
            looks[:] = [look(contact)]
            seen.append(
                Observation(
                    f"again, step {step + 1}", "train", step, before, fresh=step == 0, step=step, loss=loss
                )
            )
        return seen

    def forced(
        self,
        looks: list[Look],
        steps: int,
        *,
        stream: str,
        number: int,
        prefix: str = "",
        row: int | None = None,
        since: int | None = None,
        shown: Tensors | None = None,
    ) -> list[Observation]:
        """So many steps of the current stream, each between two looks. `looks` ends with the one before them
        and gets those behind. `number`: of steps taken; 0 makes the first one fresh. `row`: of the stream's
        next batch, and `since`: of steps since the last reset, where these are not `number`. `shown`: before
        the first of them, where that is known."""
        found: list[Observation] = []
        first = number if row is None else row
        for step in range(steps):
            if step or shown is None:
                shown = self._contact.show(self._samples(stream, first + step))
            losses = self._contact.run(1)
            looks.append(look(self._contact))
            found.append(
                Observation(
                    name=f"{prefix}step {number + step + 1}",
                    stream=stream,
                    row=first + step,
                    before=looks[-2],
                    fresh=number + step == 0,
                    step=number + step if since is None else since + step,
                    earlier=looks[-3] if len(looks) > 2 else None,
                    shown=shown,
                    loss=losses[-1] if losses else None,
                    after=looks[-1],
                )
            )
        return found

    def _timed(self, prefix: str) -> list[Observation]:
        """Of the tasks gradient and forward: what two batches gave through the verb that is timed."""
        found, contact = [], self._contact
        for stream in ("proof", "proof2"):
            contact.stream(stream)
            name = f"{prefix}timed step on {stream}"
            if self._task == "gradient":
                found.append(self._timed_gradient(name, stream, 0))
                continue
            before = _initial(contact)
            contact.run(1)
            fresh = not before.layer_state
            found.append(Observation(name, stream, 0, before, fresh=fresh, output=contact.predicted()))
        return found

    def _timed_gradient(self, name: str, stream: str, row: int) -> Observation:
        """Of the batch of that row, which is the stream's next, through the verb that is timed."""
        contact, before = self._contact, _initial(self._contact)
        shown = contact.show(self._samples(stream, row))
        losses = contact.run(1)
        return Observation(
            name, stream, row, before, fresh=not before.layer_state, shown=shown, loss=losses[-1],
            gradient=contact.dump("gradient"), moved=contact.dump("state"),
        )  # fmt: skip

    def _gradients(self, first: Look) -> list[Observation]:
        found, contact = [], self._contact
        batches = {"proof": ""} if self._is_large else GRADIENT_BATCHES
        for stream, name in batches.items():
            first = self._back_to(first)
            contact.stream(stream)
            shown = contact.show(self._samples(stream, 0))
            loss = contact.gradient()
            gradient = contact.dump("gradient")
            found.append(
                Observation(name, stream, 0, first, fresh=True, shown=shown, loss=loss, gradient=gradient)
            )
        return found

    def _back_to(self, first: Look) -> Look:
        """To the initial values, where a gradient without update has moved something: what is there then."""
        if not first.layer_state:
            return first
        self._contact.reset()
        return look(self._contact)

    def _evaluated(
        self, now: Look, *, fresh: bool, name: str = "evaluation", stay: bool = False
    ) -> Observation:
        """Inference on the first batch of `proof`, with which steps behind it begin again. `stay`: `proof`
        is the stream already, and the steps behind it go on."""
        contact = self._contact
        if not stay:
            contact.stream("proof")
        output = contact.outputs()
        kept = look(contact) if now.state else _initial(contact)
        return Observation(name, "proof", 0, now, fresh=fresh, output=output, kept=kept)

    def _plain(self, seen: list[Observation], looks: list[Look], proof: Proof) -> None:
        """The steps that were looked into once more, in one segment; of a network that is not large twice."""
        contact, ends, losses = self._contact, [], []
        for _ in range(1 if self._is_large else 2):
            contact.stream("proof")
            contact.reset()
            losses.append(contact.run(len(seen)))
            ends.append(contact.dump("parameter"))
        proof.plain = Plain(losses[0], Look(ends[0]), [_loss_of(one) for one in seen], looks[-1])
        if len(ends) > 1:
            proof.deterministic = all(_same_bits(one, other) for one, other in pairwise(ends))

    def _own_data(self, proof: Proof) -> None:
        contact = self._contact
        contact.stream("train")
        contact.reset()
        proof.losses = contact.run(LOSSES_OF_LARGE if self._is_large else LOSSES)
        if self._is_large:
            return
        contact.reset()
        looks = [look(contact)]
        proof.observations += self.forced(looks, LOSSES, stream="train", number=0, prefix="own data, ")
        contact.run(UNSEEN_STEPS)
        looks, taken = [look(contact)], LOSSES + UNSEEN_STEPS
        proof.observations += self.forced(looks, OWN_STEPS, stream="train", number=taken, prefix="own data, ")


def _loss_of(seen: Observation) -> float:
    return float("nan") if seen.loss is None else seen.loss


def _initial(contact: Contact) -> Look:
    return Look(contact.dump("parameter"), layer_state=contact.dump("state"))


def _same_bits(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
