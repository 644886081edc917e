"""A figure of the self benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One row: what was measured, what it should be, what it is."""

    what: str
    target: str
    measured: str
    met: bool

    @classmethod
    def at_most(cls, what: str, limit: float, value: float, unit: str, digits: int = 1) -> Figure:
        """A figure that should not exceed `limit`."""
        return cls(what, f"<= {limit:g} {unit}", f"{value:.{digits}f} {unit}", value <= limit)

    @classmethod
    def at_least(cls, what: str, limit: float, value: float, unit: str = "", digits: int = 2) -> Figure:
        """A figure that should not fall below `limit`."""
        return cls(
            what, f">= {limit:g} {unit}".rstrip(), f"{value:.{digits}f} {unit}".rstrip(), value >= limit
        )
