"""What is drawn while a run goes on must not be able to end it."""

from __future__ import annotations

import io
import sys

import pytest

from timetrial.experiment.progress import TerminalProgress


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
