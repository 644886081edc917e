"""Its place makes `inner` and `scripted` importable."""

from __future__ import annotations

import pytest
import scripted
from inner import Inner


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Plug-ins behave otherwise in a worker of pytest-xdist, and these sessions are none.
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
    # No plug-in that happens to be installed, and not this one twice.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr("timetrial.testing.engine.real_engine", scripted.engine)
    return Inner(pytester)
