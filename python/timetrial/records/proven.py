"""Whose proof counts for a case: its own, or that of one which computes the same with other threads, say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from timetrial.records.model import CaseRecord


def content_of(case: str) -> str:
    """The content id that is in the id of a case: repetitions (A/A) add their number."""
    return case.split("-")[0]


def whose(content: str, group: Iterable[str], outcomes: Mapping[str, str]) -> str | None:
    """The content id whose proof counts: its own, or the first of its group that passed. None: nobody's; what
    failed may have failed for a setting that it alone has.

    `outcomes`: of the proofs that were made, by content id.
    """
    if content in outcomes:
        return content
    return next((one for one in group if outcomes.get(one) == "ok"), None)


def proof_of(case: CaseRecord, cases: Iterable[CaseRecord], outcomes: Mapping[str, str]) -> str | None:
    """The same of a case as an experiment's record has it."""
    group = [content_of(one.id) for one in cases if one.proof and one.proof == case.proof]
    return whose(content_of(case.id), group, outcomes)
