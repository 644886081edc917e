"""Whether contenders were shown to compute the same, in the words of a table's header and of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from timetrial.records.model import LaunchRecord, Parity

UNPROVEN = "unproven"
UNPROVEN_STYLE = "yellow"  # of a difference between contenders that were not shown to do the same work


@dataclass(frozen=True)
class Shown:
    """A contender and what was shown of it. `is_wrong`: a launch did not repeat what was proven."""

    name: str
    parity: Parity | None
    is_wrong: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether it was shown to compute what it should."""
        return self.parity is not None and self.parity.status == "passed" and not self.is_wrong

    @property
    def has_failed(self) -> bool:
        """Whether it was shown to compute something else."""
        return self.parity is not None and self.parity.status == "failed"


def proof_words(contenders: Sequence[Shown], all_equal: str = "all contenders proven equal") -> str:
    """'all contenders proven equal' only where nothing is to be said of any; otherwise who is not, and what
    the proof of who had to note."""
    failed = _names(one for one in contenders if one.is_wrong or one.has_failed)
    unproven = _names(one for one in contenders if not one.is_proven and one.name not in failed)
    noted = {
        f"{one.name} ({', '.join(one.parity.notes)})"
        for one in contenders
        if one.is_proven and one.parity is not None and one.parity.notes
    }
    words = [f"NOT equal: {', '.join(failed)}"] if failed else []
    words += [f"not proven: {', '.join(unproven)}"] if unproven else []
    if noted:
        words.append(f"{'proven' if words else 'proven equal'} with notes: {', '.join(sorted(noted))}")
    if words or not contenders:
        return "; ".join(words)
    return all_equal if len(contenders) > 1 else "proven"


def origin_words(case: str | None, kept: LaunchRecord | None) -> list[str]:
    """Of whom a proof is, and when it was made, where that is not the row itself in this run."""
    words = [f"of case {case}, which computes the same"] if case else []
    if kept is not None and kept.kept_from is not None:
        words.append(f"proven on {kept.started_at[:10]} in run {kept.kept_from.run}")
    return words


def kept_words(proofs: Iterable[LaunchRecord]) -> str:
    """'2 proofs kept of earlier runs; --prove-again makes them anew', or nothing."""
    kept = len({one.case for one in proofs if one.kept_from is not None})
    if not kept:
        return ""
    plural, them = ("s", "them") if kept > 1 else ("", "it")
    return f"{kept} proof{plural} kept of earlier runs; --prove-again makes {them} anew"


def _names(contenders: Iterable[Shown]) -> list[str]:
    return sorted({one.name for one in contenders})
