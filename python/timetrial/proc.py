"""Files of /proc that tell of the machine, not of a process."""

from __future__ import annotations

from pathlib import Path

from timetrial.errors import MeasurementError


def read_proc(name: str, root: Path = Path("/proc")) -> str:
    """MeasurementError: they are hidden here."""
    file = root / name
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MeasurementError(
            f"'{file}' cannot be read: {error.strerror}. timetrial needs what the kernel tells there of the "
            "machine: mount /proc without subset=pid, or start the container without hiding it (hidepid does "
            "no harm)."
        ) from None
