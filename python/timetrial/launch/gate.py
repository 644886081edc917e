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

from timetrial.agreement.precision import precision_of
from timetrial.errors import InputError, Unavailable
from timetrial.launch.contact import LaunchContact
from timetrial.launch.divergence import check_bounded, check_finite
from timetrial.launch.plan import LaunchPlan
from timetrial.processes.outcome import LaunchError
from timetrial.proof.court import FIRST_LOSSES
from timetrial.proof.expected import expected_of
from timetrial.proof.judge import Judge, NoJudge, judge_of
from timetrial.proof.parity import compare, compare_losses, merged, unproven
from timetrial.proof.parts import part_of
from timetrial.proof_batches.clear import with_clear_batches
from timetrial.proof_batches.stress import stressed, with_recipe
from timetrial.questions.observed import Observation
from timetrial.questions.sequence import LARGE_BYTES, Proof, end_observations, run_proof
from timetrial.records.model import Parity

STRESS = "stress: "
MOST_MORE = 8  # steps before those at the end that are judged: fewer than this, by chance


class Gate:
    """`prepared` is what the job is made of: the plan's workload with batches that are clear. Judging ends
    with KeyboardInterrupt once it is `cancelled`."""

    def __init__(self, plan: LaunchPlan, cancelled: Callable[[], bool] = lambda: False):
        self.is_stress = False
        self._cancelled = cancelled
        self.prepared = plan.prepared
        self._plan = plan
        self._judge: Judge | None = None
        self._reason = "there is no network that a judge could compute"
        self._observations: list[Observation] = []
        self._doubted: list[float] = []
        self._doubt = ""

    def open(self) -> None:
        """Finds the judge, before the contender starts."""
        if self._judge is not None or not self.prepared.job["streams"]:
            return
        try:
            self._judge = judge_of(self.prepared, is_stress=self.is_stress)
        except NoJudge as reason:
            self._reason = str(reason)
            return
        self.prepared = with_clear_batches(self.prepared, self._judge)

    def run_proof(self, contact: LaunchContact) -> Proof:
        """Asks for everything."""
        try:
            task, own_data = self._plan.case.task, not self.is_stress
            return run_proof(task, contact, own_data=own_data, is_large=self._is_large)
        finally:
            contact.close()

    @property
    def _is_large(self) -> bool:
        """Of such a network a proof shows fewer steps, and of its own losses the first alone is followed: the
        judge takes long for a batch of all different images, or all dumps together were too large."""
        network = self.prepared.network
        if network is None:
            return False
        size = 4 * sum(math.prod(one["shape"]) for one in network.parameters)
        takes_long = network.couples_batch and part_of(network) < network.batch_size
        return takes_long or size > LARGE_BYTES

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
        )
        return parity.model_copy(update={"deterministic": proof.deterministic})

    def judge_stress(self, parity: Parity, launch: Callable[[LaunchPlan], Proof]) -> Parity:
        """The proof's own recipe added to a parity; `launch` runs its plan."""
        plan = self._plan
        try:
            prepared = stressed(plan.case.workload, plan.prepared, plan.seed)
            judge = judge_of(prepared, is_stress=True)
        except (InputError, NoJudge) as reason:
            return unproven(str(reason), parity.losses)
        prepared = with_recipe(prepared, judge)
        case = dataclasses.replace(
            plan.case,
            workload=dataclasses.replace(
                plan.case.workload, batch_size=prepared.batch_size, optimizer=prepared.job["optimizer"]
            ),
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
            self._observations += end_observations(self._plan.case.task, contact, steps, more, since)
            contact.stream("train")
        finally:
            contact.close()

    def hold_against(self, losses: Sequence[float], proof: Parity) -> None:
        """The first losses of a timed launch are its proof's. Kernels that are chosen anew in every process
        may round a decision otherwise, which the judge must find behind the launch (ways.py); but of a large
        network some always turn, in a whole batch too many to be found. LaunchError: nobody can judge."""
        many_turn = self._is_large and self._plan.case.task == "train"
        words = compare_losses(losses, proof, turned=many_turn)
        if words is None:
            return
        if self._judge is None:
            raise LaunchError("wrong", words)
        self._doubted, self._doubt = list(losses), words

    def forget(self) -> None:
        """What was observed."""
        self._observations = []

    def judge_end(self) -> Parity | None:
        """Of what was observed; None where nobody can judge. LaunchError: it has diverged."""
        if self._judge is None or not self._observations:
            return None
        check_finite(self._observations)
        parity = compare(
            self._observations,
            self._judge,
            expected_of(self.prepared),
            losses=self._doubted,
            precision=precision_of(self._plan.case.settings),
            cancelled=self._cancelled,
        )
        if parity.status == "failed":
            check_bounded(self._observations, self._plan.proof.losses if self._plan.proof else ())
            is_doubted = (parity.tensor or "").startswith(FIRST_LOSSES)
            reason = self._doubt if is_doubted else f"behind the timed part: {parity.reason}"
            return parity.model_copy(update={"reason": reason})
        return parity
