"""The gate of one launch: what its contender is asked to show, and the verdict on it.

A proof launch shows every part of the work (proof.py), and once more under the proof's own recipe
(proof_batches). A timed launch shows the steps that follow its timed part. Both build the same thing from the
same job; all judging comes when the contender is gone, so that nothing is timed meanwhile.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.precision import precision_of
from timetrial.errors import InputError, Unavailable
from timetrial.launch.contact import LaunchContact
from timetrial.launch.divergence import Divergence, check_finite
from timetrial.launch.plan import LaunchPlan
from timetrial.processes.outcome import LaunchError
from timetrial.proof.expected import expected_of
from timetrial.proof.judge import Judge, NoJudge, judge_of, recipe_part
from timetrial.proof.parity import compare, compare_losses, merged, unproven
from timetrial.proof.parts import part_of, samples
from timetrial.proof_batches.few import of_few_images
from timetrial.proof_batches.stress import stressed, with_recipe
from timetrial.questions.observed import Batches, Observation
from timetrial.questions.sequence import LARGE_BYTES, LOSSES, STEPS_OF_LARGE, Proof, Questions
from timetrial.records.model import Parity

STRESS = "stress: "
MOST_SHOWN_BYTES = 100_000_000  # of a batch of which no image comes twice
MOST_MORE = 8  # steps before those at the end that are judged: fewer than this, by chance


class Gate:
    """`prepared` is what the job is made of: the plan's workload with batches of few different images.
    Judging ends with KeyboardInterrupt once it is `cancelled`."""

    def __init__(self, plan: LaunchPlan, cancelled: Callable[[], bool] = lambda: False):
        self.is_stress = False
        self._cancelled = cancelled
        self.prepared = plan.prepared
        self._plan = plan
        self._judge: Judge | None = None
        self._reason = "there is no network that a judge could compute"
        self._observations: list[Observation] = []

    def open(self) -> None:
        """Finds the judge, before the contender starts."""
        if self._judge is not None or not self.prepared.job["streams"]:
            return
        try:
            self._judge = judge_of(self.prepared, self._part)
        except NoJudge as reason:
            self._reason = str(reason)
            return
        self.prepared = of_few_images(self.prepared, self._part)

    def run_proof(self, contact: LaunchContact) -> Proof:
        """Asks for everything."""
        try:
            return self._questions(contact).proof(own_data=not self.is_stress)
        finally:
            contact.close()

    def _questions(self, contact: LaunchContact) -> Questions:
        batches = Batches(self.prepared.job["streams"])

        def of_batch(stream: str, row: int) -> NDArray[np.int64] | None:
            return samples(batches.batch(stream, row), self._part)

        return Questions(self._plan.case.task, contact, of_batch, is_large=self._is_large)

    @property
    def _part(self) -> int:
        """How many different images a batch of the proof has."""
        network = self.prepared.network
        if network is None:
            return self.prepared.batch_size or 1
        return recipe_part(network) if self.is_stress else part_of(network)

    @property
    def _is_large(self) -> bool:
        """Of such a network a proof shows fewer steps, and of its own data nothing but losses: the judge
        takes long for a batch of all different images, or all dumps together were too large."""
        network = self.prepared.network
        if network is None:
            return False
        size = 4 * sum(math.prod(one["shape"]) for one in network.parameters)
        takes_long = network.couples_batch and part_of(network) < network.batch_size
        return takes_long or size > LARGE_BYTES

    @property
    def _steps_looked_into(self) -> int:
        """Of those on the workload's own batches; of the others losses are judged. The images of such a batch
        are all different, so all are shown and judged: none where that is too much."""
        network = self.prepared.network
        if network is None:
            return 0
        if part_of(network) < network.batch_size and network.activation_bytes > MOST_SHOWN_BYTES:
            return 0
        return STEPS_OF_LARGE if self._is_large else LOSSES

    def judge_proof(self, proof: Proof, prefix: str = "") -> Parity:
        """Of a proof of this launch's job."""
        if self._judge is None:
            return unproven(self._reason, proof.losses)
        parity = compare(
            proof.observations,
            self._judge,
            expected_of(self.prepared),
            plain=proof.plain,
            losses=proof.losses,
            prefix=prefix,
            precision=precision_of(self._plan.case.settings),
            cancelled=self._cancelled,
            failed=Divergence(proof.observations, proof.losses[:1]).check,
        )
        return parity.model_copy(update={"deterministic": proof.deterministic})

    def judge_stress(self, parity: Parity, launch: Callable[[LaunchPlan], Proof]) -> Parity:
        """The proof's own recipe added to a parity; `launch` runs its plan."""
        plan = self._plan
        try:
            prepared = stressed(plan.case.workload, plan.prepared, plan.seed)
            assert prepared.network is not None
            judge = judge_of(prepared, recipe_part(prepared.network))
        except (InputError, NoJudge) as reason:
            return unproven(str(reason), parity.losses)
        prepared = with_recipe(prepared, judge)
        case = dataclasses.replace(
            plan.case,
            workload=dataclasses.replace(plan.case.workload, optimizer=prepared.job["optimizer"]),
        )
        stress = dataclasses.replace(
            plan, case=case, prepared=prepared, folder=plan.folder / "stress", proof=None
        )
        gate = self.for_stress(stress)
        try:
            proof = launch(stress)
        except LaunchError as failure:
            raise LaunchError(failure.outcome, f"{STRESS}{failure.reason}") from failure
        except Unavailable as error:
            raise Unavailable(f"{STRESS}{error}") from error
        gate.open()
        return merged(parity, gate.judge_proof(proof, STRESS))

    def for_stress(self, plan: LaunchPlan) -> Gate:
        """The gate of the launch of the proof's own recipe."""
        gate = Gate(plan, self._cancelled)
        gate.is_stress = True
        return gate

    def observe(self, contact: LaunchContact, steps: int, since: int) -> None:
        """Steps of a timed launch that will be judged, after so many others; `since`: the last reset."""
        if self._judge is None:
            return
        try:
            more = random.Random(f"{self._plan.seed} {self._plan.id}").randrange(MOST_MORE)
            self._observations += self._questions(contact).end(steps, more, since)
            contact.stream("train")
        finally:
            contact.close()

    def other_losses(self, losses: Sequence[float]) -> str | None:
        """Words where the first losses of a timed launch are not its proof's, and the same steps, looked
        into, may still give them: other kernels, chosen in this process or for other threads, round
        otherwise, and behind normalizations that may grow to percents within one step. LaunchError: that is
        no rounding."""
        proof = self._plan.proof
        words = None if proof is None else compare_losses(losses, proof)
        if proof is None or words is None:
            return None
        can_look = self._judge is not None and self._plan.case.task == "train"
        if compare_losses(losses[:1] if can_look else losses, proof, turned=True) is not None:
            raise LaunchError("wrong", words)
        return words if can_look else None

    def look_again(self, contact: LaunchContact, losses: Sequence[float], words: str) -> None:
        """The first steps of a timed launch once more, looked into as in a proof; `words` of other_losses().
        LaunchError: their losses are not those that were timed."""
        proof = self._plan.proof
        assert proof is not None
        steps = min(len(losses), len(proof.losses))
        try:
            seen = self._questions(contact).again(steps, looked=self._steps_looked_into)
        finally:
            contact.close()
        again = [math.nan if one.loss is None else one.loss for one in seen]
        if compare_losses(losses, proof.model_copy(update={"losses": again})) is not None:
            raise LaunchError("wrong", words)
        self._observations[:0] = seen  # in the order of the steps

    def forget(self) -> None:
        """What was observed."""
        self._observations = []

    def judge_end(self) -> Parity | None:
        """Of what was observed; None where nobody can judge. LaunchError: it has diverged."""
        if self._judge is None or not self._observations:
            return None
        check_finite(self._observations)
        first = self._plan.proof.losses[:1] if self._plan.proof else ()
        parity = compare(
            self._observations,
            self._judge,
            expected_of(self.prepared),
            precision=precision_of(self._plan.case.settings),
            cancelled=self._cancelled,
            failed=Divergence(self._observations, first).check,
        )
        if parity.status == "failed":
            return parity.model_copy(update={"reason": f"behind the timed part: {parity.reason}"})
        return parity
