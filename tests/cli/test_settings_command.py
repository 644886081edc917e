"""timetrial settings: what can be set, of whom, and how it is read back."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from timetrial.cases.case import Workload
from timetrial.cases.settings import COMMON_SETTINGS, SETTINGS
from timetrial.cli.main import app
from timetrial.contenders.known_settings import EVERYBODY, known_settings
from timetrial.control.judging import JUDGES
from timetrial.control.libraries import LIBRARY_SETTINGS

WORK = Workload("mlp", "synthetic", 8, {"name": "sgd"})


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, ["settings", *words], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_each_setting_has_a_line() -> None:
    table = shown()
    assert all(name in table for name in (*SETTINGS, "blas.library", "onednn.library"))
    assert "passive, active" in table
    assert "such as 10" in table  # nice


def test_one_setting_with_all_its_facts() -> None:
    words = shown("nice")
    assert "before the contender starts" in words
    assert "the nice value of each thread, by the kernel, at every look" in words
    assert "threads" not in shown("isa").split()


def test_json() -> None:
    [one] = json.loads(shown("onednn.math_mode", "--json"))["settings"]
    assert one["contenders"] == ["onednn", "pytorch"]
    assert (one["default"], one["values"][0]) == ("strict", "strict")
    assert len(json.loads(shown("--json"))["settings"]) == len(SETTINGS) + len(LIBRARY_SETTINGS)


def test_bad_name() -> None:
    refused = CliRunner().invoke(app, ["settings", "afinity"])
    assert refused.exit_code == 2
    assert "There is no setting 'afinity'. Did you mean 'affinity'?" in refused.stderr


def test_all_facts_are_there() -> None:
    for one in known_settings():
        assert one.words, one.name
        assert one.default, one.name
        assert one.read, one.name
        assert one.contenders, one.name
    assert set(JUDGES) <= {one.name for one in known_settings()}


def test_a_plug_in_that_is_not_built_has_what_is_said_of_it() -> None:
    """As libtorch's sources list it."""
    catalog = Path(__file__).parents[2] / "cpp" / "backends" / "libtorch" / "backend.cpp"
    listed = re.search(r"settings\[\] = \{([^}]*)nullptr\}", catalog.read_text(encoding="utf-8"))
    assert listed is not None
    said = {one.name for one in known_settings() if "libtorch" in one.contenders}
    assert said == set(re.findall(r'"([^"]+)"', listed[1])) - set(COMMON_SETTINGS)


def test_frameworks_have_what_is_said_of_them() -> None:
    [mode] = known_settings("inter_op_threads")
    assert mode.contenders == ("pytorch", "tensorflow")
    [threads] = known_settings("threads")
    assert threads.contenders == (EVERYBODY,)
