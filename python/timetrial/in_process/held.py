"""Values that are held for a while: who asked last has his, and what was there before comes back in the end.

One stack for each thing that has a value, whoever asks: nested, from several threads at once, and left in any
order. Who leaves first, below others, hands them what to restore.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Knob:
    """One thing with a value. The key is the same for the same thing, and has the thread where each thread
    has a value of its own."""

    key: Hashable
    read: Callable[[], Any]
    write: Callable[[Any], object]


@dataclass
class _Frame:
    knob: Knob
    before: Any


_lock = threading.RLock()
_stacks: dict[Hashable, list[_Frame]] = {}


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


# Another thread may hold it when a process forks, and is not there in the child.
os.register_at_fork(after_in_child=_new_lock)


class Hold:
    """Values under way; release() is to be called once."""

    def __init__(self, knobs: Sequence[tuple[Knob, Any]]):
        with _lock:
            # All are read before one is written: some libraries pass their number on to others.
            self._frames = [_Frame(knob, knob.read()) for knob, _ in knobs]
            for frame in self._frames:
                _stacks.setdefault(frame.knob.key, []).append(frame)
            try:
                for knob, value in knobs:
                    knob.write(value)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """What was there before, in the order in which it was set; errors of one do not keep the others."""
        problems: list[Exception] = []
        with _lock:
            for frame in self._frames:
                try:
                    _leave(frame)
                except OSError as error:
                    problems.append(error)
            self._frames = []
        if problems:
            raise problems[0]


def _leave(frame: _Frame) -> None:
    stack = _stacks[frame.knob.key]
    place = next(place for place, one in enumerate(stack) if one is frame)
    del stack[place]
    if not stack:
        del _stacks[frame.knob.key]
    if place < len(stack):
        stack[place].before = frame.before
    else:
        frame.knob.write(frame.before)
