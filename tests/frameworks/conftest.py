"""A measurement lock of the tests' own: they may run beside a real measurement."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lock"
    monkeypatch.setenv("TIMETRIAL_LOCK", str(path))
    return path
