"""What pytest loads (entry point pytest11): options, marker, fixture, summary. Nothing heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from timetrial.errors import InputError
from timetrial.testing import engine
from timetrial.testing.bench import Bench, Session
from timetrial.testing.judgement import Judgement, judgements_of
from timetrial.testing.marker import Wishes, checked_keywords
from timetrial.testing.suite import Suite
from timetrial.testing.summary import write_summary

MARKER = (
    "bench(max_slowdown=0.03, metric='step_time', seed=1, strict=False): what the test wants of the fixture "
    "bench. Every test that uses the fixture has this marker (-m bench, -m 'not bench')."
)
WISHES = pytest.StashKey[Wishes]()  # of an item that uses the fixture
MISTAKE = pytest.StashKey[str]()  # in its marker, where it cannot end the session
OWN_FOLDER = ".timetrial"  # under pytest's rootdir


def pytest_addoption(parser: pytest.Parser) -> None:
    """--bench and what refines it."""
    group = parser.getgroup("bench", "training steps, judged by races (timetrial)")
    group.addoption(
        "--bench",
        choices=("off", "once", "full"),
        default="once",
        help="once (default): tests with the fixture bench launch every side once and judge no time. "
        "full: races judge. off: such tests are skipped.",
    )
    group.addoption(
        "--bench-strict",
        action="store_true",
        help="What could not be decided fails, and so does a side that is unavailable.",
    )
    group.addoption(
        "--bench-seed", type=int, default=None, metavar="N", help="Seed of every race and launch (default 1)."
    )
    group.addoption(
        "--bench-results",
        type=Path,
        default=None,
        metavar="DIR",
        help=f"The folder that gets the records (default: {OWN_FOLDER} under the rootdir, unseen by git).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, and what holds for the session."""
    config.addinivalue_line("markers", MARKER)
    seed = config.getoption("bench_seed")
    if seed is not None and seed < 0:
        raise pytest.UsageError(f"--bench-seed={seed}: expected a whole number, 0 or more.")
    config.pluginmanager.register(BenchPlugin(config), "timetrial-bench")


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Bench:
    """Sides (bench.train, bench.step) and assertions about them (bench.assert_not_slower, ...)."""
    plugin = request.config.pluginmanager.get_plugin("timetrial-bench")
    assert isinstance(plugin, BenchPlugin)
    return plugin.bench(request.node)


class BenchPlugin:
    """A session's state: its options, its tests, its judgements."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._mode: str = config.getoption("bench")
        asked: Path | None = config.getoption("bench_results")
        folder = config.rootpath / OWN_FOLDER if asked is None else (config.invocation_params.dir / asked)
        refusal = _refusal(config) if self._mode == "full" else None
        self._suite = Suite()
        self._session = Session(
            judging=self._mode == "full" and refusal is None,
            refused=refusal is not None,
            reason=refusal or "--bench=full judges them",
            engine=engine.real_engine(folder, own=asked is None),
            suite=self._suite,
        )
        self._judgements: list[Judgement] = []

    def bench(self, item: pytest.Item) -> Bench:
        """The fixture's object for this test."""
        if WISHES not in item.stash:  # it asked for the fixture while it ran
            item.stash[WISHES] = self._checked(item)
            if self._mode == "off":
                pytest.skip("--bench=off")
        self._suite.begin(item.nodeid)
        return Bench(
            item.nodeid,
            item.stash[WISHES],
            self._session,
            lambda judgement: item.user_properties.append(judgement.as_property()),
        )

    @pytest.hookimpl(tryfirst=True)  # before -m selects
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Every marker is checked before any test runs; --bench=off skips."""
        for item in items:
            try:
                wishes = self._checked(item)
            except pytest.UsageError as error:
                # A worker of pytest-xdist that ends here takes the words with it.
                if not hasattr(self._config, "workerinput"):
                    raise
                item.stash[MISTAKE] = str(error)
                continue
            if "bench" not in getattr(item, "fixturenames", ()):  # notebooks have none
                continue
            item.stash[WISHES] = wishes
            if item.get_closest_marker("bench") is None:
                item.add_marker(pytest.mark.bench)
            if self._mode == "off":
                item.add_marker(pytest.mark.skip(reason="--bench=off"))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What was selected counts in the correction."""
        self._suite.expect(item.nodeid for item in session.items if WISHES in item.stash)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """What could not end the session fails the test."""
        if MISTAKE in item.stash:
            pytest.fail(item.stash[MISTAKE], pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The last report of a test has everything that it asserted, also from a worker of pytest-xdist."""
        if report.when == "teardown":
            self._judgements += judgements_of(report.user_properties)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One section, if a test used the fixture."""
        write_summary(terminalreporter, self._judgements)

    def _checked(self, item: pytest.Item) -> Wishes:
        """What the test's markers say, the nearest last, and the options."""
        chosen: dict[str, Any] = {"strict": bool(self._config.getoption("bench_strict"))}
        try:
            for marker in reversed(list(item.iter_markers("bench"))):
                chosen |= checked_keywords(marker.args, marker.kwargs, item.nodeid)
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        if self._config.getoption("bench_seed") is not None:
            chosen["seed"] = self._config.getoption("bench_seed")
        return Wishes(**chosen)


def _refusal(config: pytest.Config) -> str | None:
    """Why this process must not judge times though it was asked to."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        return (
            f"--bench=full judges nothing while {workers} workers of pytest-xdist share the machine: "
            "run it with -n 0"
        )
    return None
