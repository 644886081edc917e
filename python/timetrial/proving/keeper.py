"""What a run asks of whoever keeps proofs; and the one that keeps none, as engines of tests have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from timetrial.records.model import LaunchRecord

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan


@dataclass(frozen=True)
class Found:
    """A kept proof. None: there is none that holds; `why` says it of one that held once."""

    record: LaunchRecord | None = None
    why: str | None = None


class Keeper(Protocol):
    """Plans are those of proof launches; no method raises for what the cache folder holds."""

    def find(self, plan: LaunchPlan) -> Found:
        """The kept proof of this work, copied into the plan's folder."""

    def keep(self, plan: LaunchPlan, record: LaunchRecord, run: str) -> None:
        """Keeps a proof that was just made in this run, if it may be kept."""

    def may_share(self, plan: LaunchPlan, record: LaunchRecord) -> bool:
        """Whether the launches of a case find all that a proof of its own would have left for them, where
        `record` is the proof of the same computation with other threads, say."""

    def anew(self) -> Keeper:
        """One that finds nothing, and keeps what is proven anew."""

    def none(self) -> Keeper:
        """One that finds nothing and keeps nothing."""


class KeepsNone:
    """Nothing is kept and nothing found."""

    def find(self, plan: LaunchPlan) -> Found:
        """Nothing."""
        return Found()

    def keep(self, plan: LaunchPlan, record: LaunchRecord, run: str) -> None:
        """Does nothing."""

    def may_share(self, plan: LaunchPlan, record: LaunchRecord) -> bool:
        """Always: nothing is compiled."""
        return True

    def anew(self) -> Keeper:
        """Itself."""
        return self

    def none(self) -> Keeper:
        """Itself."""
        return self
