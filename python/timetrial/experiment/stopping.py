"""SIGTERM and SIGHUP end a measurement as Ctrl-C does, in a Python program too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """While it lasts they raise KeyboardInterrupt, unless the program has a handler of its own or wants them
    ignored. Without effect outside the main thread, where Python delivers signals."""
    is_main = threading.current_thread() is threading.main_thread()
    ours = [one for one in _SIGNALS if is_main and signal.getsignal(one) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
