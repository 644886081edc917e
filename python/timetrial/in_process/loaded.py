"""`tt.libraries()`: what this process has loaded, as a table, with what contradicts itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, overload

from timetrial.core import Libraries, LibraryFacts
from timetrial.in_process.contradictions import contradictions_of

if TYPE_CHECKING:
    from rich.console import RenderableType


class LoadedLibraries(Sequence[LibraryFacts]):
    """A sequence of libraries; shown as a table."""

    def __init__(self, found: Iterable[LibraryFacts]):
        self._found = tuple(found)
        #: What does not go together, one sentence each: two OpenMP runtimes, more threads than processors ...
        self.contradictions: tuple[str, ...] = tuple(contradictions_of(self._found))

    @overload
    def __getitem__(self, index: int) -> LibraryFacts: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LibraryFacts, ...]: ...
    def __getitem__(self, index: int | slice) -> LibraryFacts | tuple[LibraryFacts, ...]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[LibraryFacts]:
        return iter(self._found)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One of plain values for each library."""
        return [asdict(one) for one in self._found]

    def table(self) -> RenderableType:
        """For rich."""
        from timetrial.report.libraries import libraries_table

        return libraries_table(self)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def libraries() -> LoadedLibraries:
    """BLAS, OpenMP, TBB, oneDNN and ATen as this process has them loaded, whoever loaded them and whatever
    their files are called. Loads nothing. A copy whose functions are hidden (oneDNN inside a framework)
    cannot be found, nor can pools that belong to no library (TensorFlow's, XLA's)."""
    return LoadedLibraries(one.facts() for one in Libraries().loaded())
