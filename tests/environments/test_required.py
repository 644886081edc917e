"""The check that fails a run: whole runs of pytest, over a few tests that skip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import required

CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(required.__file__).parent)!r})
import required
required.could_run = lambda name: name != "far@1"
required.QUICK = ("near@1", "far@1")
required.__file__ = {{file!r}}
pytest_configure = required.pytest_configure
"""


def run(folder: Path, required_word: str, *, reason: str, place: str = "frameworks") -> tuple[int, str]:
    (folder / place).mkdir()
    (folder / "conftest.py").write_text(CONFTEST.format(file=str(folder / "required.py")))
    (folder / place / "test_it.py").write_text(
        f"import pytest\n\ndef test_runs(): pass\n\ndef test_skips(): pytest.skip({reason!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder],
        capture_output=True, text=True, env={**os.environ, "TIMETRIAL_REQUIRE": required_word},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("word", "name", "code"),
    [
        ("quick", "near@1", 1),
        ("quick", "dear@1", 0),
        ("quick", "far@1", 0),
        ("all", "dear@1", 1),
        ("all", "far@1", 0),
        ("", "near@1", 0),
    ],
)
def test_a_framework_that_could_be_here(tmp_path: Path, word: str, name: str, code: int) -> None:
    status, said = run(tmp_path, word, reason=required.framework_skip(name, "not installed"))
    assert status == code, said
    assert (f"{name} could be installed here" in said) == bool(code)
    assert (f"timetrial frameworks install {name}" in said) == bool(code)


@pytest.mark.parametrize(
    ("place", "reason", "code"),
    [
        ("runtime", "no time today", 1),
        ("runtime", required.machine_skip("one CPU"), 0),
        ("elsewhere", "no time today", 0),
    ],
)
def test_a_reason_must_be_of_a_kind(tmp_path: Path, place: str, reason: str, code: int) -> None:
    status, said = run(tmp_path, "", reason=reason, place=place)
    assert status == code, said
    assert ("without a kind of reason" in said) == bool(code)


def test_a_word_that_is_none(tmp_path: Path) -> None:
    status, said = run(tmp_path, "cheep", reason="machine: x")
    assert status != 0
    assert "TIMETRIAL_REQUIRE=cheep: expected quick or all" in said
