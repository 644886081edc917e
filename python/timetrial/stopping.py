"""What a signal does to a measurement, a command or a Python program: SIGINT, SIGTERM and SIGHUP alike.

The first raises KeyboardInterrupt, and all contenders are ended. Were that interrupted in its turn, they
would stay as they are: stopped. So a second is only noted (GNU `timeout` sends two). A third is the kernel's:
it ends this process at once, whatever it does, and each supervisor ends its contender when it is gone.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

_USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_SECOND = b"\ntimetrial: everything is being ended. The next signal ends this process at once\n"
P = ParamSpec("P")
R = TypeVar("R")

_before: dict[int, Any] = {}  # by signal that is ours now: its handler until then
_seen: list[int] = []  # since they are ours
_is_due = False  # a first one came where none may interrupt: KeyboardInterrupt follows behind that
_shields: set[CodeType] = set()


def shielded(function: Callable[P, R]) -> Callable[P, R]:
    """The function, as one that no signal of ours interrupts: a first one raises KeyboardInterrupt behind
    it. For what ends contenders, whatever it was that ended the measurement."""

    def shield(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            _raise_due(inspect.currentframe())

    _shields.add(shield.__code__)
    return functools.wraps(function)(shield)


def _raise_due(frame: FrameType | None) -> None:
    global _is_due
    if _is_due and _is_main() and frame is not None and not _is_shielded(frame.f_back):
        _is_due = False
        raise KeyboardInterrupt


def _is_shielded(frame: FrameType | None) -> bool:
    """By the frames, not by a counter: between a call and its first line there is no gap."""
    while frame is not None and frame.f_code not in _shields:
        frame = frame.f_back
    return frame is not None


def _is_main() -> bool:
    """Whether this is the thread in which Python delivers signals."""
    return threading.current_thread() is threading.main_thread()


def stop_like_ctrl_c() -> bool:
    """From here on; whether anything has changed. A signal for which the program has a handler of its own, or
    which it or whoever started it wants ignored (nohup), stays as it is."""
    if _before or not _is_main():
        return False
    for number, usual in _USUAL.items():
        if signal.getsignal(number) == usual:
            _before[number] = signal.signal(number, _stop)
    return bool(_before)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """While it lasts. Without effect outside the main thread, and within another one."""
    is_outermost = stop_like_ctrl_c()
    try:
        yield
    finally:
        if is_outermost:
            _as_before()


@shielded
def _as_before() -> None:
    _seen.clear()
    while _before:
        signal.signal(*_before.popitem())


def _stop(number: int, frame: FrameType | None) -> None:
    global _is_due
    _seen.append(number)
    if len(_seen) > 1:
        for one in _before:
            signal.signal(one, signal.SIG_DFL)
        with suppress(OSError):
            os.write(2, _SECOND)
    elif _is_shielded(frame):
        _is_due = True
    else:
        raise KeyboardInterrupt


def exit_code() -> int:
    """Of a command that was stopped, as shells count: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + (_seen[0] if _seen else int(signal.SIGINT))
