"""What is drawn while a run goes on must not be able to end it."""

from __future__ import annotations

import io
import sys

import pytest

from timetrial.progress import QuietProgress, Stage, left, lines, progress
from timetrial.progress.lines import LineProgress, NotebookProgress
from timetrial.progress.terminal import TerminalProgress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Gone(_Terminal):
    """One that somebody has closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tried = 0

    def write(self, text: str) -> int:
        self.tried += 1
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Gone()
    monkeypatch.setattr(sys, "stderr", terminal)
    with TerminalProgress() as bar:
        bar.total(2)
        bar.next("first")
        bar.done(None)
    assert terminal.tried


def test_what_others_say_meanwhile_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with TerminalProgress() as bar:
        bar.total(2)
        print("a library has words for you", file=sys.stderr)
    assert terminal.getvalue().count("a library has words for you") == 1


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def log_of(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error of a job that nobody watches. Set within a test: pytest sets its own before."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    own = _Clock()
    for module in (left, lines):
        monkeypatch.setattr(module, "time", own)
    return own


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log = log_of(monkeypatch)
    with progress(quiet=False) as bar:
        assert isinstance(bar, LineProgress)
        bar.total(6)
        for number in range(6):
            bar.next(f"launch {number}")
            clock.now += 20
            bar.done(None)
        bar.more(2)
        bar.next("one more")
    assert log.getvalue().splitlines() == [
        "timetrial: 2 of 6 · 40 s, about 80 s left · launch 2",
        "timetrial: 4 of 6 · 80 s, about 40 s left · launch 4",
        "timetrial: 6 of 8 · 2 min, about 40 s left · one more",
    ]


def test_each_stage_has_its_own_pace(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log = log_of(monkeypatch)
    with LineProgress() as bar:
        bar.stages({"proof": Stage(2, 20.0), "learning": Stage(4, 4_000.0)})
        clock.now += 31
        bar.next("proof 1")  # as was thought
        bar.done(None)
        clock.now += 31
        bar.done(None)
        bar.next("proofs are judged")
        bar.begin("learning")
        bar.left_out()  # takes no time, and says nothing of what the others take
        clock.now += 100
        bar.done(None)
        bar.next("seed 2")
    assert log.getvalue().splitlines() == [
        "timetrial: 0 of 6 · 31 s, about 67 min left · proof 1",
        "timetrial: 2 of 6 · 62 s, about 67 min left · proofs are judged",
        "timetrial: 4 of 6 · 3 min, about 3 min left · seed 2",
    ]


def test_nobody_knows_how_long_the_first_takes(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log = log_of(monkeypatch)
    with LineProgress() as bar:
        bar.total(3)
        clock.now += 31
        bar.next("first")
    assert log.getvalue() == "timetrial: 0 of 3 · 31 s · first\n"


def test_a_stage_that_ends_short_leaves_nothing(clock: _Clock) -> None:
    """A budget was spent, or who should learn has no proof."""
    bar = QuietProgress()
    bar.stages({"speed": Stage(60, 60.0), "learning": Stage(3, 30.0)})
    for _ in range(10):
        clock.now += 2
        bar.done(None)
    assert bar.plan.left_s() == 50 * 2 + 30
    bar.begin("learning", 2)
    assert (bar.plan.launches, bar.plan.ended, bar.plan.left_s()) == (12, 10, 20)
    bar.left_out(2)
    assert bar.plan.left_s() == 0


def test_what_follows_takes_as_long_each(clock: _Clock) -> None:
    bar = QuietProgress()
    bar.stages({"speed": Stage(4, 40.0)})
    bar.more(2)
    assert bar.plan.left_s() == 60
    clock.now += 5
    bar.done(None)
    assert bar.plan.left_s() == 25


def test_short_work_leaves_no_line(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log = log_of(monkeypatch)
    with LineProgress() as bar:
        bar.total(2)
        bar.next("first")
        clock.now += 29
        bar.next("second")
    assert log.getvalue() == ""


def test_how_many_are_left_may_be_unknown(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log = log_of(monkeypatch)
    with LineProgress() as bar:
        clock.now = 31
        bar.next("pair 3 of at most 24")
    assert log.getvalue() == "timetrial: 31 s · pair 3 of at most 24\n"


def test_a_notebook_has_one_line_that_goes(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    log, shown = log_of(monkeypatch), []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    with NotebookProgress() as bar:
        bar.total(2)
        bar.next("a long word for the first")
        bar.done(None)
        bar.next("second")
    assert "a long word for the first" in shown[0]
    assert "second" in shown[1]
    assert shown[2:] == [""], "one output, which is empty in the end"
    assert log.getvalue() == "", "nothing on the red ground of standard error"


def test_each_place_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    log_of(monkeypatch)
    assert type(progress(quiet=True)) is QuietProgress
    assert type(progress(quiet=False)) is LineProgress
    kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(sys, "stderr", kernel())
    assert type(progress(quiet=False)) is NotebookProgress


@pytest.mark.attempt
def test_a_log_that_is_gone_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    gone = _Gone()
    monkeypatch.setattr(sys, "stderr", gone)
    with LineProgress() as bar:
        clock.now = 60
        bar.next("first")
    assert gone.tried
