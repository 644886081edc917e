"""Shared by all tests. Its place makes `fakes` and `launching` importable."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import FakeEngine


@pytest.fixture
def fake() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def results_folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A measurement lock of the test's own: tests may run beside a real measurement."""
    path = tmp_path / "measurement.lock"
    monkeypatch.setenv("TIMETRIAL_LOCK", str(path))
    return path
