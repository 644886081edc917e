"""Who can compute a case: native plug-ins, frameworks in their interpreters, steps of the user's own."""

from __future__ import annotations

from timetrial.contenders.registry import (
    Contender,
    NotBuiltYet,
    known_backends,
    native_backends,
    resolve,
)
from timetrial.contenders.settings import validate_settings

__all__ = [
    "Contender",
    "NotBuiltYet",
    "known_backends",
    "native_backends",
    "resolve",
    "validate_settings",
]
