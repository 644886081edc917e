"""Beside other plug-ins: pytest-xdist, nbmake, pytest-benchmark; and at no cost to a session without it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from inner import Inner

THREE = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_it(bench, number):
    side = bench.train("mlp", backend="slower")
    bench.assert_not_slower(side, than=side)
"""


def test_workers_of_xdist_judge_nothing_and_the_summary_says_why(inner: Inner) -> None:
    result = inner.in_processes(THREE, "-p", "xdist", "-n", "2", "--bench=full")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "3 timing assertions not judged (--bench=full judges nothing while 2 workers of pytest-xdist "
            "share the machine: run it with -n 0)"
        ]
    )
    assert [call["call"] for call in inner.calls()] == ["once"] * 6


def test_an_unknown_keyword_of_the_marker_is_named_by_workers_too(inner: Inner) -> None:
    tests = "import pytest\n\n@pytest.mark.bench(max_slow=0.1)\ndef test_it(bench):\n    pass\n"
    result = inner.in_processes(tests, "-p", "xdist", "-n", "2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_it*max_slow*Did you mean 'max_slowdown'*"])


def test_groups_of_xdist_know_their_wishes(inner: Inner) -> None:
    tests = THREE.replace(
        "@pytest.mark.parametrize", '@pytest.mark.xdist_group("one")\n@pytest.mark.parametrize'
    )
    result = inner.in_processes(tests, "-p", "xdist", "-n", "2", "--dist", "loadgroup")
    result.assert_outcomes(passed=3)


def test_what_was_not_judged_is_no_success_where_that_was_asked(inner: Inner) -> None:
    result = inner.in_processes(THREE, "-p", "xdist", "-n", "2", "--bench=full", "--bench-strict")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["E*not judged: --bench=full judges nothing while 2 workers *"])


def test_one_worker_of_xdist_has_the_machine_for_itself(inner: Inner) -> None:
    result = inner.in_processes(THREE, "-p", "xdist", "-n", "1", "--bench=full")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["3 timing assertions judged"])


def test_xdist_without_workers_is_not_in_the_way(inner: Inner) -> None:
    inner(THREE, "-p", "xdist", "-n", "0", "--bench=full").assert_outcomes(failed=3)


def test_notebooks_of_nbmake_are_left_alone(inner: Inner) -> None:
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": "1 + 1",
        "outputs": [],
        "execution_count": None,
    }
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (inner.pytester.path / "book.ipynb").write_text(json.dumps(book))
    result = inner.in_processes(THREE, "-p", "nbmake.pytest_plugin", "--nbmake", "--bench=full")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["3 timing assertions judged"])


def test_pytest_benchmark_and_the_plugin_do_not_meet(inner: Inner) -> None:
    pytest.importorskip("pytest_benchmark")
    tests = """
        def test_both(bench, benchmark):
            side = bench.train("mlp", backend="same")
            bench.assert_not_slower(side, than=side)
            assert benchmark(sum, [1, 2]) == 3

        def test_theirs(benchmark):
            benchmark(sum, [1, 2])
        """
    options = (
        "-p",
        "pytest_benchmark.plugin",
        "--bench=full",
        "--benchmark-min-rounds=1",
        "--benchmark-columns=min",
    )
    result = inner.in_processes(tests, *options)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["1 timing assertion judged", "*benchmark: 2 tests*"], consecutive=False)
    inner.in_processes(tests, *options, "--benchmark-skip", "--bench=off").assert_outcomes(skipped=2)


def test_a_session_that_does_not_use_it_loads_nothing_heavy() -> None:
    """Not a time: which modules come along, beyond those that pytest has itself."""
    code = (
        "import sys, pytest; before = set(sys.modules); import timetrial.testing.plugin; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "timetrial" in done.stdout.split()
    assert not {"numpy", "scipy", "pydantic", "rich", "typer", "pandas"} & set(done.stdout.split())
