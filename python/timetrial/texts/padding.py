"""Sequences of unequal lengths as one array, with their lengths beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.core import Input
from timetrial.dataset_files.dataset import IntArray
from timetrial.dataset_files.memory import is_too_much, memory_bytes
from timetrial.errors import InputError

NOT_COUNTED = -1  # the label of a step that no loss counts


def lengths_input(name: str = "lengths") -> Input:
    """How many steps of a sample count."""
    return Input(name, (), "i64", "lengths")


def padded(
    sequences: Sequence[npt.NDArray[Any]], steps: int, names: Sequence[str] | None = None, filling: int = 0
) -> tuple[npt.NDArray[Any], IntArray]:
    """(n, steps, ...) with `filling` behind the end of each, and the lengths (n). Longer ones are cut.

    InputError: one is empty; `names` say which.
    """
    for number, one in enumerate(sequences):
        if len(one) == 0:
            what = names[number] if names else f"Sequence {number}"
            raise InputError(
                f"{what} is empty; expected at least one step. Take it out, or look what is in it."
            )
    first = sequences[0]
    needed = len(sequences) * steps * first[:1].nbytes
    if is_too_much(needed):
        raise InputError(
            f"{len(sequences):,} sequences of {steps:,} steps take {needed / 1e9:,.0f} GB, and this machine "
            f"has {memory_bytes() / 1e9:.0f} GB of memory. Take fewer steps: dataset=NAME@STEPS."
        )
    array = np.full((len(sequences), steps, *first.shape[1:]), filling, first.dtype)
    lengths = np.array([min(len(one), steps) for one in sequences], np.int64)
    for row, one, length in zip(array, sequences, lengths, strict=True):
        row[:length] = one[:length]
    return array, lengths


def blank(array: npt.NDArray[Any], lengths: IntArray) -> None:
    """0 behind the end of each sequence, in an array (n, steps, ...)."""
    array[np.arange(array.shape[1])[None, :] >= lengths[:, None]] = 0


def lengths_in_words(lengths: IntArray, steps: int) -> str:
    """'7 to 29, in the mean 15.6: 54 % of 29 steps'."""
    mean = float(lengths.mean())
    useful = f"{100 * mean / steps:.0f} % of {steps} steps"
    return f"{lengths.min()} to {lengths.max()}, in the mean {mean:.1f}: {useful}"


def cut_in_words(sequences: Sequence[npt.NDArray[Any]], steps: int) -> str:
    """How many were longer."""
    longer = sum(len(one) > steps for one in sequences)
    return f"{longer:,} of {len(sequences):,} to their first {steps} steps"
