"""How long it may take: another piece begins only if there is time for one more like it."""

from __future__ import annotations

import math
import re
import time

from timetrial.errors import InputError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smh])")


def seconds_of(value: object) -> float:
    """Of "90s", "2m", "1h30m", or of a number of seconds. InputError: anything else, or nothing at all."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    else:
        text = str(value).strip()
        if not text or _PART.sub("", text).strip():
            raise _wrong(value)
        found = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not 0 < found < math.inf:
        raise _wrong(value)
    return found


def _wrong(value: object) -> InputError:
    return InputError(f"budget is {value!r}; expected a time such as 90s, 2m or 1h30m.")


class Budget:
    """The clock of one session. None: it may take as long as it takes.

    `spent_s`: by earlier sessions of the same record.
    """

    def __init__(self, seconds: float | None, spent_s: float = 0.0):
        self._seconds = seconds
        self._began = time.monotonic() - spent_s
        self._last = time.monotonic()
        self._longest_s = 0.0
        self._half = self._began + (seconds or 0.0) / 2

    def allows_another(self) -> bool:
        """Whether a piece that takes as long as the longest so far would still end in time. Ask before each:
        the time since the last question was a piece."""
        now = time.monotonic()
        self._longest_s = max(self._longest_s, now - self._last)
        self._last = now
        return self._seconds is None or now - self._began + self._longest_s <= self._seconds

    def begin(self) -> None:
        """Pieces begin here: what came before (proofs) was none."""
        self._last = time.monotonic()
        if self._seconds is not None:
            self._half = (self._last + self._began + self._seconds) / 2

    @property
    def half_is_over(self) -> bool:
        """Whether half of the time that there is for pieces has passed."""
        return self._seconds is not None and time.monotonic() >= self._half

    @property
    def left_s(self) -> float | None:
        """Seconds until it is over; None: there is no end."""
        return None if self._seconds is None else self._began + self._seconds - time.monotonic()

    def double(self) -> None:
        """Twice as much in all."""
        self._seconds = None if self._seconds is None else 2 * self._seconds
