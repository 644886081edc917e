"""Words of the API and their numbers in the C ABI (backend.h)."""

from __future__ import annotations

from collections.abc import Mapping

from timetrial.errors import InputError, nearest

TASKS = {"train": 1, "gradient": 2, "forward": 4}
PARTS = {"forward": 1, "loss": 2, "backward": 4, "update": 8}
DTYPES = {"f32": 1, "f64": 2}
FLAGS = {"reads_no_data": 1, "unprovable": 2, "profiles": 4}
ROLES = {
    "parameter": 1,
    "state": 2,
    "gradient": 3,
    "activation": 4,
    "optimizer": 5,
    "input_gradient": 6,
}


def code(what: str, word: str, codes: Mapping[str, int]) -> int:
    """The number of a word; `what` is its kind, for the message."""
    if word not in codes:
        raise InputError(f"unknown {what} '{word}'.{nearest(word, codes)}")
    return codes[word]


def words_of(mask: int, codes: Mapping[str, int]) -> tuple[str, ...]:
    """The words whose bits are set."""
    return tuple(word for word, bit in codes.items() if mask & bit)
