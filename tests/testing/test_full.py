"""--bench=full judges: what passes, what fails, what only warns."""

from __future__ import annotations

import pytest
from inner import Inner

TEST = """
def test_it(bench):
    base = bench.train("mlp", backend="eigen", threads=1)
    bench.assert_not_slower(bench.train("mlp", backend="{verdict}", threads=1), than=base)
"""


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        ("same", "same * +0.4 % [[]-1.1, +2.0] * 10 "),
        ("faster", "better * -31.0 % [[]-33.0, -29.0] * 10 "),
        ("bounded", "inconclusive * -4.0 % [[]-12.0, +4.0] * 10 "),
    ],
)
@pytest.mark.parametrize("strict", [[], ["--bench-strict"]])
def test_not_slower_passes(inner: Inner, verdict: str, line: str, strict: list[str]) -> None:
    result = inner(TEST.format(verdict=verdict), "--bench=full", *strict)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "result  side * base * verdict * effect * pairs  seconds  test",
            f"passed  {verdict} network=mlp* eigen network=mlp* {line} *test_inner.py::test_it",
            "1 timing assertion judged",
        ]
    )
    (call,) = inner.calls()
    assert (call["call"], call["metric"], call["seed"]) == ("race", "step_time", 1)
    assert [side["backend"] for side in call["sides"]] == ["eigen", verdict]  # the first is the base
    assert (call["rule"]["min_effect"], call["rule"]["equivalence"]) == (0.03, pytest.approx(0.05))


def test_slower_fails_with_everything_that_is_needed(inner: Inner) -> None:
    result = inner(TEST.format(verdict="slower"), "--bench=full", "--bench-seed=7")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*bench.assert_not_slower(*",
            "E*AssertionError: what the race explains",
            "E*  accident    chance at most 3e-08 if both were alike, by the model of Yuen's t: *",
            "E*  as a test   pytest 'test_inner.py::test_it' --bench=full --bench-seed=7",
            "FAILED *::test_it: slower * against eigen *: 4.9 % slower [[]4.1, 5.6], 10 pairs, confirmed",
            "1 timing assertion judged",
        ]
    )
    result.stdout.no_fnmatch_line("*testing/bench.py*")
    assert inner.calls()[0]["seed"] == 7


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (
            "unclear",
            "inconclusive: differences under 3.1 % cannot be seen here [[]-2.0, +6.1], 10 pairs. Measure on "
            "a quieter machine, *max_slowdown=0.04",
        ),
        (
            "unconfirmed",
            "inconclusive: not confirmed [[]+4.1, +5.6], *a second race found +0.3 %: measure again",
        ),
    ],
)
def test_what_was_not_decided_is_counted_by_itself_and_strict_fails_it(
    inner: Inner, verdict: str, line: str
) -> None:
    warned = inner(TEST.format(verdict=verdict), "--bench=full", "--color=yes")
    warned.assert_outcomes(passed=0)
    assert "\x1b[33m\x1b[1m1 not decided\x1b[0m" in warned.stdout.str(), "in yellow, and not as passed"
    assert warned.ret == pytest.ExitCode.OK
    warned = inner(TEST.format(verdict=verdict), "--bench=full")
    warned.stdout.fnmatch_lines(
        [
            f"UNDECIDED test_inner.py::test_it: {verdict} * against eigen *: {line}",
            "1 timing assertion judged, 1 undecided (--bench-strict fails them)",
        ]
    )
    strict = inner(TEST.format(verdict=verdict), "--bench=full", "--bench-strict")
    strict.assert_outcomes(failed=1)
    strict.stdout.fnmatch_lines(
        ["E*AssertionError: what the race explains", f"FAILED *: {verdict} * against *{line}"]
    )
    marked = f"import pytest\n\n@pytest.mark.bench(strict=True){TEST.format(verdict=verdict)}"
    inner(marked, "--bench=full").assert_outcomes(failed=1)


def test_what_could_not_be_judged_fails(inner: Inner) -> None:
    result = inner(TEST.format(verdict="broken"), "--bench=full")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED *: broken * against eigen *: not judged: it crashed 3 times"])


def test_what_a_test_allows_decides(inner: Inner) -> None:
    inner(
        """
        import pytest

        @pytest.mark.bench(max_slowdown=0.06, metric="samples_per_s", seed=3)
        def test_marker(bench):
            side = bench.train("mlp", backend="same")
            bench.assert_not_slower(side, than=side)

        @pytest.mark.bench(max_slowdown=0.06)
        def test_argument(bench):
            side = bench.train("mlp", backend="same")
            bench.assert_not_slower(side, than=side, max_slowdown=0.12, metric="samples_per_s")
        """,
        "--bench=full",
    ).assert_outcomes(passed=2)
    marker, argument = inner.calls()
    assert (marker["rule"]["min_effect"], marker["metric"], marker["seed"]) == (0.06, "samples_per_s", 3)
    assert (argument["rule"]["min_effect"], argument["metric"], argument["seed"]) == (
        0.12,
        "samples_per_s",
        1,
    )
    assert argument["rule"]["equivalence"] == pytest.approx(0.2)


def test_a_rate_that_is_surely_not_lower_passes(inner: Inner) -> None:
    """-12 % of the rate is +14 % of the time; `bounded` reaches that far down, so here it is undecided."""
    call = (
        'bench.assert_not_slower(bench.train("mlp", backend="bounded"), than=base, metric="samples_per_s"%s)'
    )
    test = 'def test_it(bench):\n    base = bench.train("mlp", backend="eigen")\n    '
    inner(test + call % "", "--bench=full").stdout.fnmatch_lines(["*1 undecided*"])
    inner(test + call % ", max_slowdown=0.1", "--bench=full").stdout.no_fnmatch_line("*undecided*")


def test_a_race_of_ones_own_is_reported_and_judged_by_the_test(inner: Inner) -> None:
    result = inner(
        """
        from timetrial.statistics.verdict import Rule

        def test_it(bench):
            base = bench.train("mlp", backend="eigen")
            others = [bench.train("mlp", backend=name) for name in ("slower", "faster")]
            race = bench.race(base, *others, metric="peak_memory", rule=Rule(min_effect=0.1))
            assert race.duels[1].effect.high < 0
            assert race.verdict != "worse"
        """,
        "--bench=full",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["raced * worse * peak_memory +4.9 % *", "raced * better * peak_memory -31.0 % *"]
    )
    assert inner.calls()[0]["rule"]["min_effect"] == 0.1


def test_junit_has_every_judgement(inner: Inner) -> None:
    inner(TEST.format(verdict="same"), "--bench=full", "--junitxml=junit.xml")
    text = (inner.pytester.path / "junit.xml").read_text()
    assert '<property name="bench" value="' in text
    assert "&quot;assertion&quot;: &quot;not slower&quot;, &quot;status&quot;: &quot;passed&quot;" in text
