"""Fixtures of the tests of texts and series."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place of installed data sets: what the machine has is no business of these tests."""
    folder = tmp_path / "installed"
    monkeypatch.setenv("TIMETRIAL_DATASETS", str(folder))
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    return folder
