"""What a session costs, what its races may take, and the history that it keeps."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest
from inner import Inner

from timetrial.changes.history import history
from timetrial.testing.engine import importable

TEST = """
def test_it(bench):
    base = bench.train("mlp", backend="eigen", threads=1)
    bench.assert_not_slower(bench.train("mlp", backend="{backend}", threads=1), than=base)
"""


def test_what_measuring_took_is_said_in_every_mode(inner: Inner) -> None:
    for options in ([], ["--bench=full"]):
        result = inner(TEST.format(backend="same"), *options)
        result.stdout.fnmatch_lines(["measuring took * s in 1 test: test_inner.py::test_it * s"])
    failed = inner(TEST.format(backend="crash"))
    failed.stdout.fnmatch_lines(["measuring took * s in 1 test: *"])
    inner("def test_it(bench):\n    pass\n").stdout.no_fnmatch_line("*measuring took*")


def test_a_race_may_take_two_minutes_unless_told_otherwise(inner: Inner) -> None:
    marked = f"import pytest\n\n@pytest.mark.bench(budget='90s'){TEST.format(backend='same')}"
    inner(TEST.format(backend="same"), "--bench=full")
    inner(marked, "--bench=full")
    inner(marked, "--bench=full", "--bench-budget=1h")
    assert [call["budget"] for call in inner.calls()] == [120.0, 90.0, 3600.0]


@pytest.mark.parametrize(
    ("backend", "advice"),
    [
        # 10 pairs in 2 minutes. Their scatter asks for 24: 4.8 minutes, and a fifth more.
        ("late", "Its time was over after 10 pairs: about 6m would decide it (--bench-budget=6m, or the *"),
        # As many pairs again to confirm it.
        ("late-worse", "Its time was over before a second race could confirm it: about 5m would *"),
        ("late-first", "Its time was over after 10 pairs: about 3m would decide it *"),
        ("late-hopeless", "Measure on a quieter machine, give a step more work, or judge more coarsely*"),
    ],
)
def test_a_race_that_ran_out_of_time_says_what_would_decide_it(
    inner: Inner, backend: str, advice: str
) -> None:
    result = inner(TEST.format(backend=backend), "--bench=full")
    result.assert_outcomes(passed=0)
    result.stdout.fnmatch_lines([f"UNDECIDED test_inner.py::test_it: *{advice}", "*, 1 not decided in *"])
    inner(TEST.format(backend=backend), "--bench=full", "--bench-strict").assert_outcomes(failed=1)


@pytest.mark.parametrize("asked", ["soon", "0", "-1m", "nan"])
def test_a_wrong_budget_is_a_usage_error(inner: Inner, asked: str) -> None:
    result = inner("def test_it(bench):\n    pass\n", f"--bench-budget={asked}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --bench-budget: budget is '{asked}'; expected a time such as *"])


EVERYTHING = """
import pytest

@pytest.mark.parametrize("backend", ["same", "slower", "unclear", "broken"])
def test_speed(bench, backend):
    bench.assert_not_slower(bench.train("mlp", backend=backend), than=bench.train("mlp", backend="eigen"))

def test_learns(bench):
    bench.assert_learns(bench.train("mlp", backend="lazy"), accuracy=0.9, epochs=2)

def test_memory(bench):
    bench.assert_memory_at_most(bench.train("mlp", backend="eigen"), "200 MB")
"""


def test_a_history_gets_a_line_for_each_judgement(inner: Inner) -> None:
    options = ("--bench=full", "--bench-json=history.jsonl")
    inner(EVERYTHING, *options).assert_outcomes(passed=2, failed=3)
    file = inner.pytester.path / "history.jsonl"
    found = {one.name: one for one in history(file).entries}
    assert len(found) == 6
    slower = found["test_inner.py::test_speed[slower]: slower network=mlp"]
    assert (slower.source, slower.metric, slower.against, slower.unit) == (
        "pytest", "step_time", "eigen network=mlp", "1",
    )  # fmt: skip
    assert (slower.estimate, slower.low, slower.high) == pytest.approx((1.049, 1.041, 1.056))
    assert slower.confidence == pytest.approx(0.997)
    assert (slower.verdict, slower.status) == ("worse", "failed")
    broken = found["test_inner.py::test_speed[broken]: broken network=mlp"]
    assert (broken.estimate, broken.status) == (None, "failed")
    learns = found["test_inner.py::test_learns: lazy network=mlp"]
    assert (learns.metric, learns.estimate, learns.direction, learns.status) == (
        "accuracy", 0.5, "higher", "failed",
    )  # fmt: skip
    memory = next(one for one in found.values() if one.metric == "peak_memory")
    assert (memory.estimate, memory.unit, memory.status) == (50 * 2**20, "bytes", "passed")
    inner(EVERYTHING, *options)
    assert len(file.read_text().splitlines()) == 12


def test_what_was_not_judged_joins_no_history(inner: Inner) -> None:
    inner(TEST.format(backend="same"), "--bench-json=history.jsonl").assert_outcomes(passed=1)
    assert not (inner.pytester.path / "history.jsonl").exists()


def test_one_worker_of_xdist_writes_through_its_controller(inner: Inner) -> None:
    options = ("-p", "xdist", "-n", "1", "--bench=full", "--bench-json=history.jsonl")
    inner.in_processes(TEST.format(backend="same"), *options).assert_outcomes(passed=1)
    (line,) = (inner.pytester.path / "history.jsonl").read_text().splitlines()
    assert math.isclose(json.loads(line)["estimate"], 1.004)


def test_a_history_that_cannot_be_written_is_said_and_fails_no_test(inner: Inner) -> None:
    (inner.pytester.path / "history.jsonl").write_text("name,time\n")
    result = inner(TEST.format(backend="same"), "--bench=full", "--bench-json=history.jsonl")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["WARNING --bench-json: *is no history: its first line is no JSON object*"])
    assert (inner.pytester.path / "history.jsonl").read_text() == "name,time\n"


@pytest.mark.parametrize(
    ("place", "words"), [("nowhere/h.jsonl", "there is no folder"), (".", "is a folder")]
)
def test_a_place_that_no_history_can_have(inner: Inner, place: str, words: str) -> None:
    result = inner("def test_it(bench):\n    pass\n", f"--bench-json={place}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --bench-json=*{words}*"])


# ------------------------------------------------------------------------------------------ what is found


def test_the_rootdir_is_on_the_path_while_contenders_start(tmp_path: Path) -> None:
    before = list(sys.path)
    with importable(tmp_path):
        assert sys.path == [*before, str(tmp_path)]
        with importable(tmp_path):
            assert sys.path.count(str(tmp_path)) == 1
    assert sys.path == before
    with importable(None):
        assert sys.path == before


def test_a_function_is_a_step_too(inner: Inner) -> None:
    result = inner(
        """
        def make_step():
            return lambda: None

        def test_it(bench):
            mine = bench.step(make_step, threads=1)
            bench.assert_not_slower(mine, than=mine)
        """
    )
    result.assert_outcomes(passed=1)
    assert inner.calls()[0]["sides"][0]["callable"] == "test_inner:make_step"
