"""Standard error, for what is drawn while a run goes on."""

from __future__ import annotations

import contextlib
import io
import sys


class Forgiving(io.StringIO):
    """As long as it takes anything: a terminal that is gone must not end the run."""

    def __init__(self) -> None:
        super().__init__()
        # This one, whatever takes its name: rich puts a stream there that writes back into this one.
        self._stream = sys.stderr

    def write(self, text: str) -> int:
        """All of it is taken, whether or not it arrives."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Or not."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Of standard error, as the next."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Of standard error."""
        return self._stream.fileno()
