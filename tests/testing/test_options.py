"""The marker and the options: validated before any test runs, and out of others' way."""

from __future__ import annotations

import pytest
from inner import Inner


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("max_slow=0.1", "the marker bench has no keyword 'max_slow'. Did you mean 'max_slowdown'?"),
        (
            "pairs=3",
            "the marker bench has no keyword 'pairs'. Known: budget, max_slowdown, metric, seed, strict.",
        ),
        ("budget='soon'", "budget is 'soon'; expected a time such as 90s, 2m or 1h30m."),
        ("budget=0", "budget is 0; expected a time *"),
        ("0.1", "the marker bench takes keywords only, not 0.1. Known: budget, max_slowdown, *"),
        ("max_slowdown=3", "max_slowdown is 3; expected a fraction above 0 and up to 1 (0.03 is 3 %)."),
        ("max_slowdown=0", "max_slowdown is 0; expected a fraction*"),
        ("max_slowdown=float('nan')", "max_slowdown is nan; expected a fraction*"),
        ("max_slowdown='3 %'", "max_slowdown is '3 %'; expected a fraction*"),
        ("metric='peak_memory'", "metric is 'peak_memory'; expected step_time or samples_per_s."),
        ("seed=-1", "seed is -1; expected a whole number, 0 or more."),
        ("seed=True", "seed is True; expected a whole number, 0 or more."),
        ("strict=1", "strict is 1; expected True or False."),
    ],
)
def test_a_wrong_marker_ends_the_session_before_any_test(inner: Inner, marker: str, message: str) -> None:
    result = inner(
        f"""
        import pytest

        def test_first():
            raise RuntimeError("a test ran")

        @pytest.mark.bench({marker})
        def test_it(bench):
            pass
        """
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_inner.py::test_it: {message}"])
    result.stdout.no_fnmatch_line("*a test ran*")


def test_a_fixture_that_is_asked_for_late_is_the_same(inner: Inner) -> None:
    tests = """
        import pytest

        @pytest.mark.bench(seed=5)
        def test_it(request):
            bench = request.getfixturevalue("bench")
            side = bench.train("mlp", backend="same")
            bench.assert_not_slower(side, than=side)
        """
    inner(tests, "--bench=full").assert_outcomes(passed=1)
    assert [call["seed"] for call in inner.calls()] == [5]
    inner(tests, "--bench=off").assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--bench=quick", "*argument --bench: invalid choice: 'quick'*"),
        ("--bench-seed=x", "*argument --bench-seed: invalid int value: 'x'"),
        ("--bench-seed=-1", "ERROR: --bench-seed=-1: expected a whole number, 0 or more."),
        ("--bench-stric", "*unrecognized arguments: --bench-stric*"),
    ],
)
def test_a_wrong_option_is_a_usage_error(inner: Inner, option: str, message: str) -> None:
    result = inner("def test_it(bench):\n    pass\n", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_the_nearest_marker_wins(inner: Inner) -> None:
    inner(
        """
        import pytest

        pytestmark = pytest.mark.bench(max_slowdown=0.1, seed=2)

        @pytest.mark.bench(max_slowdown=0.2)
        class TestIt:
            def test_it(self, bench):
                side = bench.train("mlp", backend="same")
                bench.assert_not_slower(side, than=side)
        """,
        "--bench=full",
    ).assert_outcomes(passed=1)
    (call,) = inner.calls()
    assert (call["rule"]["min_effect"], call["seed"]) == (0.2, 2)


def test_tests_that_use_the_fixture_are_selected_by_the_marker(inner: Inner) -> None:
    tests = """
        import pytest

        @pytest.fixture
        def mine(bench):
            return bench.train("mlp", backend="same")

        def test_direct(bench):
            pass

        def test_through_another_fixture(mine):
            pass

        def test_other():
            pass
        """
    inner(tests, "-m", "bench", "--strict-markers").assert_outcomes(passed=2, deselected=1)
    inner(tests, "-m", "not bench").assert_outcomes(passed=1, deselected=2)


def test_the_marker_is_listed(inner: Inner) -> None:
    inner("", "--markers").stdout.fnmatch_lines(
        ["@pytest.mark.bench(max_slowdown=0.03, metric='step_time', *"]
    )


def test_records_lie_where_they_were_asked(inner: Inner) -> None:
    test = (
        'def test_it(bench):\n    bench.assert_memory_at_most(bench.train("mlp", backend="same"), "1 GB")\n'
    )
    inner(test, "--bench-results=elsewhere").assert_outcomes(passed=1)
    assert [call["launches"] for call in inner.calls("elsewhere")] == [1]
    inner(test, "--bench=full").assert_outcomes(passed=1)
    assert [call["launches"] for call in inner.calls()] == [3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "assert_not_slower('a.b:c', than='d.e:f')",
            "'d.e:f' is no side: bench.train(...) and bench.step(...)*",
        ),
        ("race({'backend': 'same'})", "{'backend': 'same'} is no side: *"),
        ("assert_learns('eigen', accuracy=0.9, epochs=1)", "'eigen' is no side: *"),
        (
            "assert_not_slower(side, than=side, max_slowdown=5)",
            "assert_not_slower: max_slowdown is 5; expected *",
        ),
        (
            "assert_not_slower(side, than=side, metric='x')",
            "assert_not_slower: metric is 'x'; expected step_time *",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["once", "full"])
def test_what_is_no_side_or_no_number_is_named(inner: Inner, mode: str, call: str, message: str) -> None:
    result = inner(
        f'def test_it(bench):\n    side = bench.train("mlp", backend="same")\n    bench.{call}\n',
        f"--bench={mode}",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E*InputError: {message}"])
    assert inner.calls() == []
