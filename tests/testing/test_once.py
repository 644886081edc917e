"""By default every side runs once, as a test, and no time is judged."""

from __future__ import annotations

import subprocess

import pytest
from inner import Inner

THREE = """
def test_one(bench):
    eigen = bench.train("mlp", backend="eigen", threads=1)
    bench.assert_not_slower(eigen, than=eigen.replace(threads=2))

def test_two(bench):
    mine = bench.step("package.training:make_step", threads=1)
    before = mine.replace(python=".venv-before/bin/python")
    bench.assert_not_slower(mine, than=before)
    bench.assert_not_slower(mine, than=before, max_slowdown=0.1)
"""


def test_everything_runs_once_and_the_summary_says_that_nothing_was_judged(inner: Inner) -> None:
    result = inner(THREE)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["3 timing assertions not judged (--bench=full judges them)"])
    calls = inner.calls()
    assert [call["call"] for call in calls] == ["once"] * 6
    assert calls[0]["sides"] == [{"backend": "eigen", "network": "mlp", "threads": 2}]
    assert calls[2]["sides"] == [
        {"callable": "package.training:make_step", "threads": 1, "python": ".venv-before/bin/python"}
    ]


def test_one_assertion_is_not_plural(inner: Inner) -> None:
    result = inner(THREE, "-k", "one")
    result.stdout.fnmatch_lines(["1 timing assertion not judged (--bench=full judges them)"])


def test_a_side_that_crashes_fails_the_test_at_the_users_line(inner: Inner) -> None:
    result = inner(
        """
        def test_it(bench):
            mine, base = (bench.train("mlp", backend=name) for name in ("crash", "same"))
            bench.assert_not_slower(mine, than=base)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*bench.assert_not_slower(mine, than=base)",
            "E*AssertionError: crash network=mlp: crash: ValueError: shapes differ",
            "E*  records     records/7f3a",
            "E*  again       timetrial run ...",
            "E*  as a test   pytest 'test_inner.py::test_it' --bench-seed=1",
        ]
    )
    assert "site-packages/timetrial" not in result.stdout.str()
    result.stdout.no_fnmatch_line("*testing/bench.py*")


def test_bad_input_is_an_error_at_the_users_line(inner: Inner) -> None:
    result = inner(
        """
        def test_it(bench):
            side = bench.train("mlp", backend="mistaken")
            bench.assert_not_slower(side, than=side)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*InputError: There is no backend 'mistaken'. Did you mean 'eigen'?"])
    result.stdout.no_fnmatch_line("*testing/bench.py*")


def test_what_this_machine_lacks_is_skipped_with_its_cure(inner: Inner) -> None:
    test = """
        def test_it(bench):
            side = bench.train("mlp", backend="absent")
            bench.assert_not_slower(side, than=side)
        """
    result = inner(test, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*unavailable: absent is not installed. Install it: *"])
    strict = inner(test, "--bench-strict")
    strict.assert_outcomes(failed=1)
    strict.stdout.fnmatch_lines(["E*AssertionError: unavailable: absent is not installed*"])


def test_a_race_of_ones_own_runs_each_side_and_goes_no_further(inner: Inner) -> None:
    result = inner(
        """
        def test_it(bench):
            race = bench.race(bench.train("mlp", backend="same"), bench.train("mlp", backend="faster"))
            assert race.duels[0].effect.low < 0
        """,
        "-rs",
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        [
            "1 timing assertion not judged (--bench=full judges them)",
            "SKIPPED*every side runs; the race was not judged (--bench=full judges them)",
        ]
    )
    assert [call["call"] for call in inner.calls()] == ["once", "once"]


def test_off_skips_and_launches_nothing(inner: Inner) -> None:
    result = inner(THREE + "\ndef test_other():\n    pass\n", "--bench=off", "-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED [[]2] *--bench=off"])
    assert inner.calls() == []


def test_a_session_without_the_fixture_hears_nothing_of_it(inner: Inner) -> None:
    result = inner("def test_other():\n    pass\n", "--bench=full")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*bench*")


@pytest.mark.parametrize(
    ("assertion", "failure"),
    [
        ('learns(bench.train("mlp", backend="eigen"), accuracy=0.9, epochs=2)', None),
        (
            'learns(bench.train("mlp", backend="lazy"), accuracy=0.9, epochs=2)',
            "lazy network=mlp: accuracy 50.0 % after 2 epochs, asked 90.0 %",
        ),
        (
            'learns(bench.train("mlp", backend="crash"), accuracy=0.9, epochs=2)',
            "crash network=mlp: crash: ValueError*",
        ),
        (
            'learns(bench.train("mlp", backend="lazy"), accuracy=90, epochs=2)',
            "*accuracy is 90; expected a fraction*",
        ),
        ('memory_at_most(bench.train("mlp", backend="eigen"), "200 MB")', None),
        (
            'memory_at_most(bench.train("mlp", backend="fat"), "200 MB")',
            "fat network=mlp: peak memory 300.0 MB, allowed 200.0 MB",
        ),
        ('memory_at_most(bench.train("mlp", backend="fat"), "0.5 GiB")', None),
        (
            'memory_at_most(bench.train("mlp", backend="fat"), "200 TB")',
            "*limit='200 TB': expected a size such as 2GB*",
        ),
        ('memory_at_most(bench.train("mlp", backend="fat"), 0)', "*limit=0: expected a size*"),
    ],
)
def test_what_needs_no_clock_is_judged(inner: Inner, assertion: str, failure: str | None) -> None:
    result = inner(f"def test_it(bench):\n    bench.assert_{assertion}\n")
    if failure is None:
        result.assert_outcomes(passed=1)
    else:
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"E*Error: {failure}"])
    result.stdout.no_fnmatch_line("*not judged*")


GROWTH = """
    def test_it(bench):
        bench.assert_no_growth(bench.train("mlp", backend="{backend}"))
    """


@pytest.mark.parametrize(
    ("backend", "option", "outcome", "words"),
    [
        ("leaks", "--bench=once", "failed", "memory grows by 4 MB a step (1946 MB at step 500)"),
        ("leaks", "--bench=full", "failed", "memory grows by 4 MB a step (1946 MB at step 500)"),
        ("slows", "--bench=full", "failed", "a step becomes slower by 0.5 % with each 10 steps (25 %*)"),
        ("slows", "--bench=once", "passed", None),  # one launch tells nothing of time
        ("same", "--bench=full", "passed", None),
    ],
)
def test_growth_is_red_with_its_slope(
    inner: Inner, backend: str, option: str, outcome: str, words: str | None
) -> None:
    result = inner(GROWTH.format(backend=backend), option)
    result.assert_outcomes(**{outcome: 1})
    if words:
        result.stdout.fnmatch_lines([f"E*AssertionError: {backend} network=mlp: {words}"])
    line = "1 timing assertion not judged*" if option == "--bench=once" and outcome == "passed" else "*"
    result.stdout.fnmatch_lines([line])
    assert [call["launches"] for call in inner.calls()] == [3 if option == "--bench=full" else 1]


@pytest.mark.parametrize("option", ["--bench=once", "--bench=full"])
def test_growth_of_too_few_steps_is_not_decided(inner: Inner, option: str) -> None:
    result = inner(GROWTH.format(backend="short"), option)
    words = "short network=mlp: its launches have too few steps to tell whether it grows"
    result.stdout.fnmatch_lines([f"UNDECIDED test_inner.py::test_it: {words}", "*1 not decided*"])
    assert result.ret == 0
    strict = inner(GROWTH.format(backend="short"), option, "--bench-strict")
    strict.assert_outcomes(failed=1)
    strict.stdout.fnmatch_lines([f"E*AssertionError: {words}"])


def test_every_seed_must_learn(inner: Inner) -> None:
    test = """
        def test_it(bench):
            bench.assert_learns(bench.train("mlp", backend="chancy"), accuracy=0.9, epochs=2)
        """
    inner(test).assert_outcomes(passed=1)
    full = inner(test, "--bench=full")
    full.assert_outcomes(failed=1)
    full.stdout.fnmatch_lines(
        ["E*chancy network=mlp: accuracy 97.0 %, 95.0 %, 89.0 % after 2 epochs, asked 90.0 %"]
    )
    assert [call["seeds"] for call in inner.calls()] == [1, 3]


def test_a_revision_is_the_same_side_in_a_commit(inner: Inner) -> None:
    test = """
        def test_it(bench):
            mine = bench.step("package.training:make_step", threads=1)
            bench.assert_not_slower(mine, than=bench.revision("main"))
    """
    result = inner(test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*InputError: `git rev-parse *` in * fails: fatal: not a git repository*"])
    result.stdout.no_fnmatch_line("*testing/bench.py*")
    commit = ["-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "--allow-empty", "-m", "first"]
    for words in (["init", "--initial-branch=main"], commit):
        subprocess.run(["git", *words], check=True, capture_output=True)
    inner(test).assert_outcomes(passed=1)
    base, mine = inner.calls()[0]["sides"][0], inner.calls()[1]["sides"][0]
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert head.startswith(base.pop("revision"))
    assert base == mine == {"callable": "package.training:make_step", "threads": 1}
