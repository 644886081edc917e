"""What pytest loads (entry point pytest11): options, marker, fixture, summary. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from timetrial.errors import InputError
from timetrial.testing import engine
from timetrial.testing.bench import Bench, Session
from timetrial.testing.judgement import COST, NOT_DECIDED, Judgement, judgements_of, seconds_of
from timetrial.testing.marker import Wishes, check_budget, checked_keywords
from timetrial.testing.suite import Suite
from timetrial.testing.summary import write_summary

if TYPE_CHECKING:
    from timetrial.in_process.settings import Applied

MARKER = (
    "bench(max_slowdown=0.03, metric='step_time', seed=1, strict=False, budget='2m'): what the test wants of "
    "the fixture bench. Every test that uses the fixture has this marker (-m bench, -m 'not bench')."
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
        "--bench-budget",
        default=None,
        metavar="TIME",
        help="At most so long for a race: 90s, 5m (default 2m). One that ends undecided says what it needs.",
    )
    group.addoption(
        "--bench-json",
        type=Path,
        default=None,
        metavar="FILE",
        help="Append a line of JSON for everything that was judged to this history; `timetrial history FILE` "
        "shows and draws it.",
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
    if config.getoption("bench_budget") is not None:
        try:
            check_budget(config.getoption("bench_budget"), "--bench-budget")
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
    history = _history_of(config)
    if history is not None and (history.is_dir() or not history.parent.is_dir()):
        what = "is a folder" if history.is_dir() else f"there is no folder '{history.parent}'"
        raise pytest.UsageError(f"--bench-json={history}: {what}; expected a file to append to.")
    config.pluginmanager.register(BenchPlugin(config), "timetrial-bench")


@pytest.fixture
def library_settings() -> Iterator[Callable[..., Applied]]:
    """`library_settings(threads=1)`: as `tt.settings`, in this process until the test ends."""
    from timetrial.in_process.settings import settings

    with ExitStack() as held:
        yield lambda **asked: held.enter_context(settings(**asked))


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
            engine=engine.real_engine(folder, own=asked is None, rootdir=config.rootpath),
            suite=self._suite,
            history=_history_of(config) is not None,
        )
        self._judgements: list[Judgement] = []
        self._costs: dict[str, float] = {}  # test -> seconds that the fixture took
        self._troubles: list[str] = []  # with the history

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
            lambda seconds: item.user_properties.append((COST, f"{seconds:.3f}")),
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
            found = judgements_of(report.user_properties)
            self._judgements += found
            seconds = seconds_of(report.user_properties)
            if seconds is not None:
                self._costs[report.nodeid] = seconds
            self._remember(found)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        """A test whose race decided nothing is not one that passed: it is counted by itself, in yellow."""
        if report.when != "call" or not report.passed or hasattr(report, "wasxfail"):
            return None
        if all(one.status != "undecided" for one in judgements_of(report.user_properties)):
            return None
        return NOT_DECIDED, "?", (NOT_DECIDED.upper(), {"yellow": True})

    def _remember(self, found: list[Judgement]) -> None:
        """In the history, at once: a session may be killed. Workers of pytest-xdist leave that to their
        controller."""
        history, lines = _history_of(self._config), [one.entry for one in found if one.entry is not None]
        if history is None or not lines or hasattr(self._config, "workerinput"):
            return
        from timetrial.changes.entry import Entry, commit_of
        from timetrial.changes.history import append

        try:
            commit = commit_of(self._config.rootpath)
            append(history, [Entry(**line, **commit) for line in lines])
        except InputError as error:
            self._troubles.append(str(error))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One section, if a test used the fixture."""
        write_summary(terminalreporter, self._judgements, self._costs, self._troubles)

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
        if self._config.getoption("bench_budget") is not None:
            chosen["budget"] = check_budget(self._config.getoption("bench_budget"), "--bench-budget")
        return Wishes(**chosen)


def _history_of(config: pytest.Config) -> Path | None:
    """The file of --bench-json."""
    asked: Path | None = config.getoption("bench_json")
    return None if asked is None else config.invocation_params.dir / asked


def _refusal(config: pytest.Config) -> str | None:
    """Why this process must not judge times though it was asked to."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        return (
            f"--bench=full judges nothing while {workers} workers of pytest-xdist share the machine: "
            "run it with -n 0"
        )
    return None
