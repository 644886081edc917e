"""Error control over a session: a test fails for good, and only if the whole session stays honest."""

from __future__ import annotations

import pytest
from inner import Inner
from scripted import duel

from timetrial.races import Duel
from timetrial.statistics.verdict import Rule
from timetrial.testing.suite import LEVEL, Suite, accident, corrected

BARELY = """
import pytest

@pytest.fixture
def base(bench):
    return bench.train("mlp", backend="eigen")

@pytest.mark.parametrize("number", range({same}))
def test_same(bench, base, number):
    bench.assert_not_slower(base.replace(backend="same"), than=base)

def test_barely(bench, base):
    bench.assert_not_slower(base.replace(backend="barely"), than=base)
"""


def test_an_accident_is_as_likely_as_both_races_erring() -> None:
    # The look behind ten pairs may err with 0.0015 of the 0.01 of all looks; the confirmation with 0.01.
    share = 0.01 / 0.0015
    assert accident(duel(p_value=0.002, confirmed=True), Rule()) == pytest.approx(share * 0.001 * 0.01)
    assert accident(duel(p_value=1e-6, confirmed=True), Rule()) == pytest.approx(share * 0.5e-6 * 0.01)


@pytest.mark.parametrize("one", [duel(confirmed=False), duel(confirmed=None), duel("same"), duel("better"),
                                 duel("inconclusive")])  # fmt: skip
def test_what_is_not_a_confirmed_worse_is_no_evidence(one: Duel) -> None:
    assert accident(one, Rule()) == 1


def test_tests_that_wait_count_as_one_assertion_each() -> None:
    suite = Suite()
    suite.expect(["a", "b", "c"])
    suite.begin("a")
    assert suite.adjusted(0.001) == pytest.approx(0.003)
    suite.begin("b")
    assert suite.adjusted(0.002) == pytest.approx(0.004)  # Holm: the smallest is rejected already
    assert suite.adjusted(0.0001) == pytest.approx(0.0004)


def test_what_failed_stays_failed_whatever_comes() -> None:
    """The correction while tests run is never milder than the one in the end, with one assertion per test."""
    suite = Suite()
    names = [str(number) for number in range(20)]
    suite.expect(names)
    chances = [10.0 ** -(number % 7) for number in range(20)]
    seen = []
    for name, chance in zip(names, chances, strict=True):
        suite.begin(name)
        seen.append(suite.adjusted(chance))
    assert all(then >= now - 1e-12 for then, now in zip(seen, corrected(chances), strict=True))


@pytest.mark.parametrize(("same", "fails"), [(3, True), (120, False)])
def test_the_weakest_failure_fails_a_small_suite_and_warns_in_a_large_one(
    inner: Inner, same: int, fails: bool
) -> None:
    result = inner(BARELY.format(same=same), "--bench=full", "-q")
    assert 2.7e-4 * 4 <= LEVEL < 2.7e-4 * 121
    if fails:
        result.assert_outcomes(passed=same, failed=1)
    else:
        result.assert_outcomes(passed=same)  # and one that is not decided
        result.stdout.fnmatch_lines(
            ["UNDECIDED *::test_barely: *Confirmed, but * has a chance of 0.032: run this test alone"]
        )


def test_a_failure_that_the_rest_of_its_session_does_not_bear_is_a_warning_too(inner: Inner) -> None:
    """When the first test failed, one more was waiting. That one made 120 assertions."""
    result = inner(
        """
        def test_barely(bench):
            base = bench.train("mlp", backend="eigen")
            bench.assert_not_slower(base.replace(backend="barely"), than=base)

        def test_many(bench):
            base = bench.train("mlp", backend="eigen")
            for _ in range(120):
                bench.assert_not_slower(base.replace(backend="same"), than=base)
        """,
        "--bench=full",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["WARNING *::test_barely: its failure may be an accident: over all 121 *is 0.032, more than 0.01*"]
    )
