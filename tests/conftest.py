"""Shared by all tests. Its place makes `fakes` importable."""

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
