"""Files of time series with the ending .ts: lines of @keywords, then one series a line, its channels apart by
colons, its values by commas, the label last. Lengths may differ from line to line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from timetrial.dataset_files.files import read_text
from timetrial.errors import InputError


@dataclass(frozen=True)
class TimeSeries:
    """Of one file."""

    series: tuple[npt.NDArray[np.float32], ...]  # (T, F)
    labels: tuple[str, ...]


def read_ts(file: Path) -> TimeSeries:
    """InputError: something in it is not what the form says."""
    lines = read_text(file).splitlines()
    header, first = _header(file, lines)
    if header.get("timestamps", "false").lower() != "false":
        raise InputError(f"{file} has @timeStamps; expected values at equal distances, without time stamps.")
    if header.get("classlabel", "").split(" ")[0].lower() != "true":
        raise InputError(f"{file} has no @classLabel true; expected a label at the end of each series.")
    known = header["classlabel"].split()[1:]
    series: list[npt.NDArray[np.float32]] = []
    labels: list[str] = []
    for number, line in enumerate(lines[first:], start=first + 1):
        if not line.strip() or line.startswith("#"):
            continue
        *channels, label = line.strip().split(":")
        if label not in known:
            raise InputError(
                f"{file}, line {number}: the label '{label}'; expected one of {', '.join(known)}."
            )
        series.append(_series(f"{file}, line {number}", channels, series))
        labels.append(label)
    if not series:
        raise InputError(f"{file} has no series after @data.")
    return TimeSeries(tuple(series), tuple(labels))


def _header(file: Path, lines: Sequence[str]) -> tuple[dict[str, str], int]:
    """Its keywords in lower case, and the number of the first line of data."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        word, _, value = line.strip().partition(" ")
        if word.lower() == "@data":
            return found, number + 1
        if word.startswith("@"):
            found[word[1:].lower()] = value.strip()
        elif word and not word.startswith("#"):
            break
    raise InputError(f"{file} has no line @data behind its keywords: it is no file of time series (.ts).")


def _series(
    where: str, channels: Sequence[str], before: Sequence[npt.NDArray[np.float32]]
) -> npt.NDArray[np.float32]:
    """(T, F) of one line."""
    values = []
    for text in channels:
        try:
            values.append(np.array([float(word) for word in text.split(",")], np.float32))
        except ValueError:
            wrong = next((word for word in text.split(",") if not _is_number(word)), text)
            words = "a missing value" if wrong.strip() in ("?", "NaN") else f"'{wrong.strip()}'"
            raise InputError(
                f"{where}: {words}; expected numbers. Fill it in, or take the series out."
            ) from None
    if before and len(values) != before[0].shape[1]:
        raise InputError(
            f"{where}: {len(values)} channels; expected {before[0].shape[1]}, as the series before have."
        )
    if not values or len({len(one) for one in values}) != 1:
        lengths = ", ".join(str(len(one)) for one in values) or "none"
        raise InputError(f"{where}: channels of {lengths} values; expected as many in each.")
    array = np.stack(values, axis=1)
    if not np.isfinite(array).all():
        raise InputError(f"{where}: a value that is no finite number. Fill it in, or take the series out.")
    return array


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
