"""How often a contender that has ended was looked at."""

from __future__ import annotations

from pathlib import Path

from timetrial.control.sampling import Looks
from timetrial.errors import InputError
from timetrial.records.samples import read_samples


def looks_in(folder: Path) -> Looks:
    """Of its launch; none where the table cannot be read."""
    try:
        samples = read_samples(folder)
    except InputError:
        samples = None
    if samples is None or not len(samples):
        return Looks()
    return Looks(len(samples), float(samples["time_ns"][-1] - samples["time_ns"][0]) / 1e9)
