"""Fails a run in which a test was skipped that this machine could have run.

Skips in tests/frameworks and tests/runtime say why by one of these words at the beginning of their reason:

    framework NAME@VERSION: ...   it is not installed
    machine: ...                  this machine cannot: too few CPUs, no such interpreter

TIMETRIAL_REQUIRE=quick (`make test`) fails the run where one of QUICK was skipped that could be installed
here; TIMETRIAL_REQUIRE=all (`make test-all`) where any was that comes from packages.

    python tests/required.py quick|all      what to say to `timetrial frameworks install`
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

VARIABLE = "TIMETRIAL_REQUIRE"
WATCHED = ("frameworks", "runtime")  # folders of tests/
# Those that `make test` proves, and in which modes: the newest of the most used, an old one, and one that is
# not like the others. Tests of all the rest are marked full.
QUICK = {
    "pytorch@2.13.0": ("eager",),
    "mxnet@1.4.1": ("imperative", "hybridized", "symbolic"),
    "jax@0.12.0.1": ("jit",),
}
_KIND = re.compile(r"(?:Skipped: )?(?:(framework) (\S+?): |machine: )")


def framework_skip(name: str, reason: object) -> str:
    """The reason of a test that needs `name@version`."""
    return f"framework {name}: {reason}"


def machine_skip(reason: str) -> str:
    """The reason of a test that this machine cannot run."""
    return f"machine: {reason}"


class Watcher:
    """Collects skips while tests run, and judges them in the end."""

    def __init__(self, required: str, root: Path, could_run: Callable[[str], bool]):
        self._required = required
        self._root = root
        self._could_run = could_run  # name@version -> whether it could be installed
        self._skips: dict[str, str] = {}  # test or file -> reason

    def _see(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        path = (self._root / report.nodeid.partition("::")[0]).resolve()
        if any(Path(__file__).parent / folder in path.parents for folder in WATCHED):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._skips[report.nodeid] = reason

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._see(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._see(report)

    def complaints(self) -> list[str]:
        """One for each reason that is none, and for each framework that should have been there."""
        found: dict[str, None] = {}
        for test, reason in self._skips.items():
            kind = _KIND.match(reason)
            if kind is None:
                found[f"{test}: skipped without a kind of reason (see tests/required.py): {reason}"] = None
            elif kind[1] and self._requires(kind[2]) and self._could_run(kind[2]):
                found[f"{kind[2]} could be installed here, and its tests were skipped: "
                      f"timetrial frameworks install {kind[2]}"] = None  # fmt: skip
        return list(found)

    def _requires(self, name: str) -> bool:
        return self._required == "all" or (self._required == "quick" and name in QUICK)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.complaints() and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for complaint in self.complaints():
            terminalreporter.write_line(f"FAILED {complaint}", red=True)


def could_run(name: str) -> bool:
    """Whether `install` would find what it needs, but for the network."""
    from timetrial.environments import find_framework, states

    framework, version = find_framework(name)
    version = version or framework.versions[0]
    return not version.user_path and states.can_be_installed(framework, version)


def pytest_configure(config: pytest.Config) -> None:
    """Called by conftest.py."""
    required = os.environ.get(VARIABLE, "")
    if required not in ("", "quick", "all"):
        raise pytest.UsageError(f"{VARIABLE}={required}: expected quick or all")
    config.pluginmanager.register(Watcher(required, config.rootpath, could_run), "timetrial-required")


if __name__ == "__main__":
    print(*(["--all"] if sys.argv[1:] == ["all"] else filter(could_run, QUICK)))
