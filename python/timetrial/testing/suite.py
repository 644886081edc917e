"""Error control over all timing assertions of a session: confirmation, then Holm.

A race calls identical code slower in at most 1 % of cases; a suite of a hundred tests would then alarm every
other day. So each *worse* is confirmed by a second, independent race (the race itself does that), and the
chance that identical code comes through both is corrected for the number of timing assertions (Holm 1979).
A test fails while it runs, as users of pytest expect, when that corrected chance is at most `LEVEL`. What is
still to come is not known then; each test that waits counts as one assertion that will find nothing, and that
can only make the correction harder. The summary corrects again, over the assertions that there were.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timetrial.races import Duel
    from timetrial.statistics.verdict import Rule

LEVEL = 0.01  # the chance that any test of a session fails though no code is slower, at most


def accident(duel: Duel, rule: Rule) -> float:
    """The chance, at most, that identical code is called worse and confirmed with a p-value like this one.

    Each look of a race may spend its share of the error that all may make (`rule.errors`), so a one-sided
    p-value counts as often as its look's share goes into the whole (weighted Bonferroni); the confirmation,
    which is independent, says worse of identical code with that whole at most. What was not called worse, or
    not confirmed, has 1: it fails nothing. It is a bound by a model, not a rate that was counted: that pairs
    are independent of one another and that their trimmed mean follows Student's t (Yuen), far out in its
    tails. What was counted is in docs/statistics.md.
    """
    if duel.verdict != "worse" or not duel.confirmed or duel.p_value is None:
        return 1.0
    whole = sum(rule.errors)
    first = min(1.0, duel.p_value / 2 * whole / rule.error_at(duel.pairs))
    return first * min(1.0, whole)


class Suite:
    """The timing assertions of a session, as they are judged."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._chances: list[float] = []

    def expect(self, tests: Iterable[str]) -> None:
        """These tests will make timing assertions; nobody knows how many."""
        self._waiting.update(tests)

    def begin(self, test: str) -> None:
        """This one runs now: from here on its assertions count themselves."""
        self._waiting.discard(test)

    def adjusted(self, chance: float) -> float:
        """A new assertion's chance, corrected for those judged so far and those still to come."""
        self._chances.append(chance)
        return corrected([*self._chances, *[1.0] * len(self._waiting)])[len(self._chances) - 1]


def corrected(chances: list[float]) -> list[float]:
    """Holm's correction of each."""
    from timetrial.statistics.multiplicity import holm  # late: it brings NumPy

    return [float(one) for one in holm(chances)]
