"""Errors of timetrial.core."""

from __future__ import annotations

from timetrial.errors import InputError


class NetworkError(InputError):
    """A network that cannot be: the text names the layers and shapes that do not fit."""
