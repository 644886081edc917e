"""Series of unequal lengths with a label each, from two files NAME_TRAIN.ts and NAME_TEST.ts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, find_files
from timetrial.dataset_files.trees import root_of
from timetrial.errors import InputError
from timetrial.texts.classified import series_dataset
from timetrial.texts.ts_files import TimeSeries, read_ts

VOWELS = "japanese-vowels"
LAYOUT = "NAME_TRAIN.ts and NAME_TEST.ts"

Doubles = NDArray[np.float64]


def vowels_files(folder: str | None) -> list[Path]:
    """To train on and to test on."""
    names = [(f"JapaneseVowels_{part}.ts",) for part in ("TRAIN", "TEST")]
    return find_files(VOWELS, folder, names, ("JapaneseVowels",))


def load_vowels(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """Nine speakers, 12 coefficients in each of 7 to 29 steps (Kudo, Toyama and Shimbo, Pattern Recognition
    Letters 20, 1999), each in units of its own scatter: that of the first is five times that of the eleventh.
    The split is the published one."""
    return _load(name, vowels_files(folder), steps, scales=True)


def _series_files(folder: str | None) -> list[Path]:
    """The two of the user's folder."""
    root = root_of("series", folder, LAYOUT)
    found = []
    for part in ("TRAIN", "TEST"):
        files = sorted(one for end in ("", ".gz") for one in root.glob(f"*_{part}.ts{end}"))
        if len(files) != 1:
            names = ", ".join(one.name for one in files) or "none"
            raise InputError(f"'{folder}' has {names} for *_{part}.ts; expected one file. Expected {LAYOUT}.")
        found.append(files[0])
    return found


def series_key(folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return file_hashes(_series_files(folder))


def load_series(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """The user's own."""
    return _load(name, _series_files(folder), steps)


def _load(name: str, files: list[Path], steps: int | None, *, scales: bool = False) -> Dataset:
    """`scales`: by mean and standard deviation of each channel, over all steps of the series to train on."""
    train, test = (read_ts(file) for file in files)
    channels = [one.series[0].shape[1] for one in (train, test)]
    if channels[0] != channels[1]:
        raise InputError(f"{files[1]} has {channels[1]} channels; expected {channels[0]}, as {files[0]} has.")
    classes = sorted({*train.labels, *test.labels})
    unseen = set(test.labels) - set(train.labels)
    if unseen:
        raise InputError(
            f"{files[1]} has the label '{min(unseen)}', which no series of {files[0]} has; expected one of "
            f"{', '.join(sorted(set(train.labels)))}."
        )
    description: dict[str, Any] = {
        "source": "time series in .ts files",
        "split": "as published",
        "class_names": ", ".join(classes),
        "files_sha256": file_hashes(files),
    }
    if scales:
        values = np.concatenate(train.series).astype(np.float64)
        mean, scatter = values.mean(axis=0), values.std(axis=0)
        scatter = np.where(scatter > 0, scatter, 1.0)  # of a channel that is always the same nothing is left
        train, test = (replace(one, series=_scaled(one, mean, scatter)) for one in (train, test))
        description["scaled"] = "each channel to mean 0 and scatter 1 over the steps to train on"
    longest = max(len(series) for one in (train, test) for series in one.series)
    return series_dataset(
        name, _part(train, classes), _part(test, classes), len(classes), steps or longest, description
    )


def _scaled(one: TimeSeries, mean: Doubles, scatter: Doubles) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple(((values - mean) / scatter).astype(np.float32) for values in one.series)


def _part(one: TimeSeries, classes: list[str]) -> tuple[tuple[np.ndarray[Any, Any], ...], Any]:
    return one.series, np.array([classes.index(label) for label in one.labels], np.int64)
