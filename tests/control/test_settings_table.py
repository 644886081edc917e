"""The table of settings: one entry, and one function for what shows that it took effect."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import timetrial
from timetrial.caps import caps
from timetrial.cases.case import Case, Workload
from timetrial.cases.settings import PARENT_SETTINGS, SETTINGS
from timetrial.contenders import resolve, validate_settings
from timetrial.control import (
    allocator,
    blas_variables,
    counting,
    huge_pages,
    malloc,
    niceness,
    openmp,
    sampling,
)
from timetrial.control.judging import JUDGES, Evidence, judge_settings
from timetrial.control.libraries import LIBRARY_SETTINGS
from timetrial.errors import InputError

WORK = Workload("mlp", "digits", 8, {"name": "sgd", "learning_rate": 0.1})


def test_whoever_judges_a_setting_finds_it_in_the_table() -> None:
    assert set(JUDGES) <= set(SETTINGS)
    assert set(malloc.NAMES) <= set(SETTINGS)
    assert not {one.name for one in LIBRARY_SETTINGS} & set(SETTINGS)  # these are found by their libraries


@pytest.mark.parametrize("name", [name for name, kind in SETTINGS.items() if kind.values])
def test_what_a_setting_cannot_be_is_said_before_anything_starts(name: str) -> None:
    contender = resolve(Case("eigen", WORK))
    case = Case("eigen", WORK, settings={name: "perhaps"})
    with pytest.raises(
        InputError, match=f"{name}='perhaps': expected {SETTINGS[name].values[0]} or|no setting"
    ):
        validate_settings(case, contender)


def test_a_setting_without_a_judge_is_judged_by_what_the_contender_says() -> None:
    case = Case("null", WORK, settings={"null.work_units": "20"})
    [judged] = judge_settings(case, Evidence())
    assert (judged.status, judged.how_read) == ("unverifiable", "nothing reports it")


def test_what_the_parent_applies_is_in_one_list() -> None:
    others = {allocator.NAME, huge_pages.NAME, niceness.NAME, sampling.NAME, malloc.WHOLE}
    others |= {*malloc.NAMES, *openmp.NAMES}
    others |= {counting.NAME, *blas_variables.VARIABLES, *caps.NAMES, caps.BY}
    assert {"affinity", "isa", "python", "revision", "cache", *others} == set(PARENT_SETTINGS)


def effects(folder: Path) -> dict[str, list[str]]:
    """Setting -> the tests below a folder that are marked as showing its effect; constants are looked up."""
    found: dict[str, list[str]] = {}
    for file in folder.rglob("test_*.py"):
        for test in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(test, ast.FunctionDef):
                continue
            for one in test.decorator_list:
                if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.effect":
                    [name] = one.args
                    word = name.value if isinstance(name, ast.Constant) else CONSTANTS[ast.unparse(name)]
                    found.setdefault(str(word), []).append(f"{file.name}::{test.name}")
    return found


CONSTANTS = {"TIMEOUT": blas_variables.TIMEOUT, "BRANCH": blas_variables.BRANCH}


def test_every_setting_has_a_test_that_would_fail_if_it_were_ignored() -> None:
    shown = effects(Path(__file__).parents[1])
    known = {*SETTINGS, *(one.name for one in LIBRARY_SETTINGS)}
    missing = known - set(shown)
    assert not missing, f"no test is marked with pytest.mark.effect({missing.pop()!r})"
    assert set(shown) <= known


def test_a_setting_without_such_a_test_is_missed(tmp_path: Path) -> None:
    text = '@pytest.mark.effect("threads")\ndef test_one(): ...\n\ndef test_nice(): ...\n'
    (tmp_path / "test_some.py").write_text(text)
    assert effects(tmp_path) == {"threads": ["test_some.py::test_one"]}


def test_no_other_file_has_a_list_of_settings() -> None:
    package = Path(timetrial.__file__).parent
    names = [re.compile(rf'"{name}"') for name in ("threads", "affinity", "isa", "cache")]
    lists = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if all(name.search(path.read_text(encoding="utf-8")) for name in names)
    }
    assert lists == {"cases/settings.py", "control/judging.py"}
