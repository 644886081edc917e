"""SIGTERM and SIGHUP end a command as Ctrl-C does: what was measured is shown, nothing is left running."""

from __future__ import annotations

import signal
from types import FrameType

_number = int(signal.SIGINT)  # of the signal that stopped us last


def stop_like_ctrl_c() -> None:
    """From here on. A signal that whoever started us wants ignored (nohup) stays ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    global _number
    _number = number
    raise KeyboardInterrupt


def exit_code() -> int:
    """Of a command that was stopped, as shells count: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + _number
