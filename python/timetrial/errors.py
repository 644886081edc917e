"""Every error timetrial raises on purpose. All say what, which value, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TimetrialError(Exception):
    """The family. Anything else that leaves timetrial is a bug."""


class InputError(TimetrialError, ValueError):
    """The user asked for something that cannot be: exit code 2, before anything starts."""


class Unavailable(TimetrialError):  # noqa: N818 - the word of the table
    """Known, but not on this machine or not with this install: a row of the table, not a failure."""


class MeasurementError(TimetrialError):
    """The instrument itself could not go on (no room for a record, no supervisor to start)."""


# For whoever asks for a network, layer, optimizer or device that is not there.
OWN_STEP = (
    " What is not here can be raced today: write the training step in your framework, and name the function "
    'that makes it, callable="package.module:make_step".'
)
_NEAR = 0.8  # of 1: 'lennet' is near 'lenet5'; 'alexnet' is not, nor is 'gelu' near 'relu'


def nearest(word: str, known: Iterable[str]) -> str:
    """' Did you mean 'x'?' for a near miss, the last part of a dotted name, or the same letters in
    another order; otherwise the list of what is known."""
    words = sorted(known)
    close = [
        one
        for one in words
        if one.rpartition(".")[2] == word or sorted(one.casefold()) == sorted(word.casefold())
    ] or difflib.get_close_matches(word, words, n=1, cutoff=_NEAR)
    if close:
        return f" Did you mean '{close[0]}'?"
    return f" Known: {', '.join(words)}." if words else ""
