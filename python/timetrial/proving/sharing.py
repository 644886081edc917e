"""Who is proven: of cases that differ only in what cannot change what is computed, one for all.

Threads, affinity, allocator, compile cache ... (case.WITHOUT_INFLUENCE): every timed launch is held against
the proof all the same, by its first losses and by the steps behind its timed part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from timetrial.proving.keeper import Keeper
from timetrial.records.model import LaunchRecord, Parity
from timetrial.records.proven import content_of, whose

if TYPE_CHECKING:
    from timetrial.experiment.validate import ReadyCase
    from timetrial.launch import LaunchPlan
    from timetrial.launch.plan import KeptProof

# Of these plans; each record is told as it comes.
Launch = Callable[
    [Sequence["ReadyCase"], Sequence["LaunchPlan"], Callable[[LaunchRecord], None]], Sequence[LaunchRecord]
]


def proof_group(one: ReadyCase) -> str | None:
    """The same for cases of which one is proven for all; None: it stands for itself, like everything that
    cannot be proven."""
    contender = one.contender
    if contender is None or contender.kind == "callable" or "unprovable" in contender.flags:
        return None
    return one.case.training_id


def proven_ones(cases: Iterable[ReadyCase]) -> list[ReadyCase]:
    """Those that are proven, if all goes well: the first of each group."""
    return [group[0] for group in groups_of(cases)]


def groups_of(cases: Iterable[ReadyCase]) -> list[list[ReadyCase]]:
    """In the order of the cases; repetitions (A/A) are one."""
    found: dict[str, dict[str, ReadyCase]] = {}
    for one in cases:
        key = proof_group(one) or f"itself {one.case.content_id}"
        found.setdefault(key, {}).setdefault(one.case.content_id, one)
    return [list(group.values()) for group in found.values()]


@dataclass
class Proofs:
    """What became of the proofs so far. `records`: by content id, of those that were made."""

    cases: Sequence[ReadyCase]
    records: dict[str, LaunchRecord] = field(default_factory=dict)
    _apart: set[str] = field(default_factory=set)  # content ids that may not share

    @cached_property
    def _groups(self) -> list[list[ReadyCase]]:
        return groups_of(self.cases)

    @cached_property
    def _group_of(self) -> dict[str, list[ReadyCase]]:
        """By content id."""
        return {one.case.content_id: group for group in self._groups for one in group}

    def missing(self, may_share: Callable[[ReadyCase, LaunchRecord], bool]) -> list[ReadyCase]:
        """Who is to be proven next; [] when all is known. Of a group whose first one failed, the second one:
        the reason may be the first one's own."""
        found = []
        for group in self._groups:
            left = [one for one in group if one.case.content_id not in self.records]
            judged = self._judged(group)
            if judged is None:
                found += left[:1]
            else:
                alone = [one for one in left if not may_share(one, self.records[judged])]
                self._apart |= {one.case.content_id for one in alone}
                found += alone
        return found

    def giver(self, one: ReadyCase) -> ReadyCase:
        """Whose proof counts for this case; itself where nobody's does."""
        content = one.case.content_id
        group = self._group_of[content]
        alone = content in self.records or content in self._apart
        found = None if alone else self._judged(group)
        return next(other for other in group if other.case.content_id == (found or content))

    def of(self, one: ReadyCase) -> LaunchRecord | None:
        """The proof that counts for a case."""
        return self.records.get(self.giver(one).case.content_id)

    def parities(self) -> dict[str, Parity | None]:
        """By content id, of the cases whose proof ended well."""
        found = {one.case.content_id: self.of(one) for one in self.cases}
        return {name: record.parity for name, record in found.items() if record and record.outcome == "ok"}

    def was_launched(self, one: ReadyCase) -> bool:
        """Whether a proof of this very case ran in this run."""
        record = self.records.get(one.case.content_id)
        return record is not None and record.kept_from is None

    def kept(self, one: ReadyCase) -> KeptProof | None:
        """What the launches of a case must have in common with its proof, where an earlier run made it."""
        from timetrial.launch.plan import KeptProof

        record = self.of(one)
        if record is None or record.kept_from is None:
            return None
        return KeptProof(record.libraries, record.kept_from.case == one.case.content_id)

    def make(
        self,
        keeper: Keeper,
        run: str,
        plan: Callable[[int, ReadyCase], LaunchPlan],
        launch: Launch,
        tell: Callable[[Sequence[LaunchRecord], Sequence[str]], None],
    ) -> None:
        """Finds or launches what is missing. `run`: its id; `tell`: what was kept of earlier runs, and why
        something was not."""

        def may_share(one: ReadyCase, record: LaunchRecord) -> bool:
            return keeper.may_share(plan(0, one), record)

        while missing := self.missing(may_share):
            plans = {one.case.content_id: plan(place, one) for place, one in enumerate(missing)}
            found = {one.case.content_id: keeper.find(plans[one.case.content_id]) for one in missing}
            kept = {name: one.record for name, one in found.items() if one.record is not None}
            self.records |= kept
            why = [f"{one.case.backend}: {found[one.case.content_id].why}" for one in missing
                   if found[one.case.content_id].why]  # fmt: skip
            tell([*kept.values()], why)
            left = [one for one in missing if one.case.content_id not in kept]

            def keep(record: LaunchRecord, plans: Mapping[str, LaunchPlan] = plans) -> None:
                keeper.keep(plans[content_of(record.case)], record, run)

            records = launch(left, [plans[one.case.content_id] for one in left], keep) if left else []
            self.records |= {one.case.content_id: made for one, made in zip(left, records, strict=True)}

    def _judged(self, group: Sequence[ReadyCase]) -> str | None:
        """The content id whose proof counts for those of a group that have none of their own."""
        ids = [one.case.content_id for one in group]
        return whose("", ids, {name: self.records[name].outcome for name in ids if name in self.records})
