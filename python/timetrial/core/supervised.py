"""Programs that end with us, and with all that they started, however this process ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from timetrial.core import native


class Supervised:
    """A program under timetrial-exec, as a context: leaving it, or the death of this process, ends it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        pass_fds: Sequence[int] = (),
        samples: tuple[Path, int] | None = None,
        **options: Any,
    ):
        """`samples`: a folder that gets what it uses, and how often a second. `options`: of subprocess.Popen.
        It has a session of its own: no key that ends us reaches it."""
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        looks = ["--samples", str(samples[0]), "--sample-hz", str(samples[1])] if samples else []
        words = [*looks, "--control", str(control), "--status", str(status), "--"]
        try:
            self._process = subprocess.Popen(
                [str(native.exec_path()), *words, *command],
                pass_fds=(control, status, *pass_fds),
                start_new_session=True,
                **options,
            )
        except OSError:
            self._close()
            raise
        finally:
            os.close(control)
            os.close(status)

    @property
    def stdout(self) -> IO[Any]:
        """Its output, where `stdout` is subprocess.PIPE."""
        assert self._process.stdout is not None
        return self._process.stdout

    def __enter__(self) -> Supervised:
        return self

    def wait(self, timeout_s: float | None = None) -> int:
        """Until it, and what it started, is gone. The exit code; negative: the signal that ended it.
        subprocess.TimeoutExpired: it goes on. OSError: it could not be started."""
        self._process.wait(timeout_s)
        with open(os.dup(self._status), encoding="utf-8", errors="replace") as reports:
            said = dict(line.rstrip("\n").partition(" ")[::2] for line in reports)
        if "error" in said:
            raise OSError(said["error"])
        return int(said["exited"]) if "exited" in said else -int(said.get("signaled", 9))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._control)
        self._control = -1
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        for fd in (self._control, self._status):
            if fd >= 0:
                os.close(fd)
        self._control = self._status = -1
