"""Sessions of pytest inside a test, with the plug-in loaded by its module and a scripted engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scripted

PLUGIN = ("-p", "timetrial.testing.plugin")  # by its module: its entry point is there only if installed
INNER_CONFTEST = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parent)!r})
import scripted
from timetrial.testing import engine

engine.real_engine = scripted.engine
"""


class Inner:
    """A session over one test file."""

    def __init__(self, pytester: pytest.Pytester):
        self.pytester = pytester

    def __call__(self, tests: str, *options: str) -> pytest.RunResult:
        self.pytester.makepyfile(test_inner=tests)
        return self.pytester.runpytest_inprocess(*PLUGIN, *options)

    def in_processes(self, tests: str, *options: str) -> pytest.RunResult:
        """The same, where a plug-in starts processes of its own."""
        self.pytester.makeconftest(INNER_CONFTEST)
        self.pytester.makepyfile(test_inner=tests)
        return self.pytester.runpytest_subprocess(*PLUGIN, *options)

    def calls(self, results: str = ".timetrial") -> list[dict[str, Any]]:
        """What was asked of the engine, in order."""
        log = self.pytester.path / results / scripted.LOG
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
