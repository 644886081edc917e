"""Help pages fit a terminal of 80 columns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from timetrial.cli.main import app

_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def verbs(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, one in getattr(command, "commands", {}).items():
        yield from verbs(one, (*words, name))


VERBS = list(verbs(typer.main.get_command(app)))


def misfits(page: str, width: int = 80) -> list[str]:
    """Lines that are longer, or that were cropped."""
    return [line for line in _COLORS.sub("", page).splitlines() if len(line) > width or "…" in line]


def test_all_verbs_are_looked_at() -> None:
    assert {("run",), ("race",), ("frameworks", "install"), ("list",)} <= set(VERBS)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_it_fits(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.stdout
    assert misfits(done.stdout) == []


def test_a_cropped_or_long_line_is_seen() -> None:
    assert misfits("short\n│ [experiments|backends|network… │") == ["│ [experiments|backends|network… │"]
    assert misfits("x" * 81) == ["x" * 81]
    assert misfits("x" * 80) == []


def test_a_real_terminal_of_that_width() -> None:
    command = [sys.executable, "-m", "timetrial.cli.main", "list", "--help"]
    environment = {"COLUMNS": "80", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert misfits(done.stdout) == []
