"""The table at the end of `make test`: what ran, how long, what was skipped and why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "times.py"
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="tests.race.test_sides" name="test_slow[1]" time="61.5"/>
<testcase classname="tests.race.test_sides" name="test_quick" time="0.5"/>
<testcase classname="tests.runtime.test_lua" name="test_lua" time="0.1">
<skipped type="pytest.skip" message="machine: no LuaJIT (apt install luajit)">there</skipped></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite>
<testcase name="Reference.Dense" classname="Reference.Dense" time="2.5"/></testsuite>"""


def times(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *words], cwd=folder, capture_output=True, text=True, check=False
    )


def line(text: str, start: str) -> list[str]:
    """The columns behind the line's name."""
    (found,) = [line for line in text.splitlines() if line.startswith(start)]
    return found[len(start) :].split()


def test_a_stage_is_as_good_as_its_command(tmp_path: Path) -> None:
    assert times(tmp_path, "run", "lint", "--", "true").returncode == 0
    assert times(tmp_path, "run", "lint", "--", "sh", "-c", "exit 3").returncode == 3
    assert times(tmp_path, "run", "lint", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    stages = (tmp_path / "build/times/stages.jsonl").read_text().splitlines()
    assert [json.loads(stage)["status"] for stage in stages] == [0, 3, -9]


def test_the_table(tmp_path: Path) -> None:
    times(tmp_path, "start")
    times(tmp_path, "run", "lint", "--", "true")
    times(tmp_path, "run", "lint", "--", "true")
    folder = tmp_path / "build/times"
    (folder / "pytest.xml").write_text(PYTEST)
    (folder / "ctest.xml").write_text(CTEST)
    said = times(tmp_path, "report").stdout
    assert line(said, "lint") == ["0:00", "0:00", "-"]
    assert line(said, "tests/race") == ["1:02", "-"]
    assert "61.5  pytest: race.test_sides::test_slow[1]" in said
    assert "2.5  ctest: Reference.Dense" in said
    assert "3 tests ran, 1 were skipped:" in said
    assert line(said, "       1") == ["machine:", "no", "LuaJIT"]
    kept = json.loads((folder / "times.json").read_text())
    assert kept["tests"] == {"ran": 3, "skipped": 1}


def test_the_run_before_stands_beside(tmp_path: Path) -> None:
    times(tmp_path, "start")
    times(tmp_path, "run", "lint", "--", "true")
    times(tmp_path, "report")
    file = tmp_path / "build/times/times.json"
    kept = json.loads(file.read_text())
    kept["stages"]["lint"]["seconds"] = 125
    file.write_text(json.dumps(kept))
    times(tmp_path, "start")
    times(tmp_path, "run", "lint", "--", "true")
    assert line(times(tmp_path, "report").stdout, "lint")[-1] == "2:05"


@pytest.mark.parametrize("bad", ["", "{", "[]"])
def test_a_kept_table_that_is_none_is_no_table(tmp_path: Path, bad: str) -> None:
    times(tmp_path, "start")
    (tmp_path / "build/times/times.json").write_text(bad)
    done = times(tmp_path, "report")
    assert (done.returncode, done.stderr) == (0, "")


def test_half_a_run_is_not_kept_and_says_what_failed(tmp_path: Path) -> None:
    times(tmp_path, "start")
    times(tmp_path, "run", "lint", "--", "false")
    assert "FAILED: lint" in times(tmp_path, "report").stdout
    assert not (tmp_path / "build/times/times.json").exists()


def test_an_earlier_runs_stages_and_tests_are_forgotten(tmp_path: Path) -> None:
    times(tmp_path, "run", "lint", "--", "true")
    (tmp_path / "build/times/pytest.xml").write_text(PYTEST)
    times(tmp_path, "start")
    said = times(tmp_path, "report").stdout
    assert "lint" not in said
    assert "0 tests ran, 0 were skipped:" in said


@pytest.mark.parametrize("words", [[], ["run"], ["run", "lint"], ["run", "lint", "--"], ["what"]])
def test_other_words_are_refused(tmp_path: Path, words: list[str]) -> None:
    done = times(tmp_path, *words)
    assert done.returncode == 2
    assert "python tools/times.py start" in done.stderr
