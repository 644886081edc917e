"""The plug-in over timetrial itself: a package that timetrial never heard of, and a network that it knows.

The races measure on this machine for up to a minute each. Nothing is said about a time; that +5 % is found is
asked twice, because one race in ten may end undecided on a noisy machine (and says so), none may pass it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from inner import PLUGIN

pytestmark = pytest.mark.alone

# Fixed work of about 0.2 ms, without a clock and without a library.
STEP = '''
"""A training step of this package."""

def make_step():
    weights = [0.5] * 64

    def step():
        for _ in range({work}):
            for index in range(64):
                weights[index] = 0.999 * weights[index] + 0.001

    return step
'''
# The ten lines of docs/how-to/pytest.md, for a package of one's own.
TESTS = """
def test_my_step_is_not_slower(bench):
    mine = bench.step("research.after:make_step", threads=1)
    before = mine.replace(callable="research.before:make_step")
    bench.assert_not_slower(mine, than=before, max_slowdown=0.03)
"""


@pytest.fixture
def research(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a step, and the same step 5 % slower."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    package = pytester.mkpydir("research")
    (package / "before.py").write_text(STEP.format(work=100))
    (package / "after.py").write_text(STEP.format(work=105))
    return package


def session(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_research=tests)
    return pytester.runpytest_subprocess(*PLUGIN, *options)


@pytest.mark.usefixtures("research")
def test_once_runs_a_step_of_ones_own_and_a_network(pytester: pytest.Pytester) -> None:
    more = """
def test_it_learns(bench):
    mlp = bench.train("mlp", backend="eigen", dataset="digits8", threads=1)
    bench.assert_learns(mlp, accuracy=0.8, epochs=3)
    bench.assert_memory_at_most(mlp, "200 MB")
"""
    result = session(pytester, TESTS + more)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["1 timing assertion not judged (--bench=full judges them)"])
    assert (pytester.path / ".timetrial" / ".gitignore").read_text() == "*\n"


def test_once_finds_a_step_that_does_not_run_and_a_network_that_does_not_learn(
    pytester: pytest.Pytester, research: Path
) -> None:
    (research / "after.py").write_text(
        "def make_step():\n    def step():\n        raise ValueError('shapes differ')\n    return step\n"
    )
    more = """
def test_it_learns(bench):
    bench.assert_learns(bench.train("mlp", backend="eigen", dataset="digits8"), accuracy=0.999, epochs=1)

def test_it_is_small(bench):
    bench.assert_memory_at_most(bench.train("mlp", backend="eigen", dataset="digits8"), "1 MB")

def test_it_exists(bench):
    side = bench.train("mlp", backend="eigne")
    bench.assert_not_slower(side, than=side)
"""
    result = session(pytester, TESTS + more)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "E*research.after:make_step*: crash: ValueError: shapes differ*",
            "E*eigen*: accuracy * % after 1 epochs, asked 99.9 %",
            "E*eigen*: peak memory * MB, allowed 1.0 MB",
            "E*no backend is called 'eigne'. Did you mean 'eigen'?*",
        ]
    )


@pytest.mark.full
@pytest.mark.usefixtures("research")
def test_a_planted_slowdown_of_5_percent_fails(pytester: pytest.Pytester) -> None:
    for seed in (1, 2):
        result = session(pytester, TESTS, "--bench=full", f"--bench-seed={seed}")
        if "failed" in result.parseoutcomes():
            break
        result.stdout.fnmatch_lines(["WARNED *::test_my_step_is_not_slower: *inconclusive*"])
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*research.after:make_step* against research.before:make_step*, step time: * % slower [[]*",
            "E*  base        * [[]*]   research.before:make_step*",
            "E*  challenger  * [[]*]   research.after:make_step*",
            "E*  each pair   *",
            "E*  again       timetrial race *",
            "E*  as a test   pytest 'test_research.py::test_my_step_is_not_slower' --bench=full *",
            "FAILED test_research.py::test_my_step_is_not_slower: * slower *, confirmed",
        ]
    )


@pytest.mark.full
@pytest.mark.usefixtures("research")
def test_a_step_against_itself_does_not_fail(pytester: pytest.Pytester) -> None:
    tests = TESTS.replace('mine.replace(callable="research.before:make_step")', "mine")
    result = session(pytester, tests, "--bench=full")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 timing assertion judged*"])
    result.stdout.no_fnmatch_line("*faster*")


@pytest.mark.parametrize(
    ("layout", "options", "ini"),
    [
        pytest.param(".", ["--import-mode=prepend"], "", marks=pytest.mark.full),
        pytest.param(".", ["--import-mode=append"], "", marks=pytest.mark.full),
        (".", ["--import-mode=importlib"], ""),
        ("src", ["--import-mode=importlib"], "pythonpath = src"),
    ],
)
def test_a_project_that_is_not_installed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, layout: str, options: list[str], ini: str
) -> None:
    """Plain `pytest project`, from elsewhere: neither the working directory nor the tests' folder has it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    project = pytester.path / "project"
    package, tests = project / layout / "research", project / "tests"
    for folder in (package, tests):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("before", "after"):
        (package / f"{name}.py").write_text(STEP.format(work=1))
    (tests / "test_research.py").write_text(TESTS)
    (project / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    # Not `python -m pytest`, which puts the working directory on the path.
    command = (
        "import sys; sys.path = [one for one in sys.path if one]; import pytest; sys.exit(pytest.main())"
    )
    result = pytester.run(sys.executable, "-c", command, str(project), *PLUGIN, *options)
    result.assert_outcomes(passed=1)


def test_a_project_that_cannot_be_found_is_said(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A src layout without `pythonpath`: the test process cannot import it either."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package = pytester.path / "src" / "research"
    package.mkdir(parents=True)
    (package / "before.py").write_text(STEP.format(work=1))
    (package / "after.py").write_text(STEP.format(work=1))
    result = session(pytester, TESTS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*there is no module 'research'*pythonpath*"])


@pytest.mark.usefixtures("research")
def test_once_runs_the_step_of_a_revision(
    pytester: pytest.Pytester, research: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(pytester.path / "cache"))
    commit = ("-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "-m", "first")
    for words in (("init", "--initial-branch=main"), ("add", "research"), commit):
        subprocess.run(["git", *words], check=True, capture_output=True)
    tests = """
def test_it(bench):
    bench.assert_not_slower(bench.step("research.after:make_step"), than=bench.revision("main"))
"""
    (research / "after.py").write_text("def make_step():\n    raise ValueError('of the working tree')\n")
    result = session(pytester, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: research.after:make_step: crash: *of the working tree*"])
    assert "revision=" not in result.stdout.str()  # the base ran
