"""Errors of timetrial.core."""

from __future__ import annotations

from timetrial.errors import InputError, TimetrialError


class NetworkError(InputError):
    """A network that cannot be: the text names the layers and shapes that do not fit."""


class BackendError(TimetrialError):
    """A backend's call failed; the text is the backend's own. (What it does not have is `Unavailable`.)"""
