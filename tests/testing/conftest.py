"""Its place makes `inner` and `scripted` importable."""

from __future__ import annotations

import pytest
import scripted
from inner import Inner


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # No plug-in that happens to be installed, and not this one twice.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr("timetrial.testing.engine.real_engine", scripted.engine)
    return Inner(pytester)
