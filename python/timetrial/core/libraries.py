"""The numerical libraries that this process has loaded, whoever loaded them: found, asked and told."""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.core import _core


@dataclass(frozen=True)
class LibraryFacts:
    """What a loaded library says of itself. '' and None: it does not tell."""

    kind: str  # blas, openmp, tbb, onednn, aten
    vendor: str  # OpenBLAS, BLIS, MKL, ATLAS, GNU, LLVM, Intel, oneDNN, PyTorch
    version: str  # in its own words
    kernel: str  # the kernels it chose for this CPU
    threading: str  # what its threads are: pthreads, OpenMP, TBB, none
    integer_bits: int | None  # the width of its integers
    threads: int | None  # by its own getter, which is known to be wrong at times
    threads_getter: str  # the function that told
    of_calling_thread: bool  # whether the number is that of the calling thread, or of the process
    limits: str  # what it cannot be told, or what its answers do not mean
    path: str  # of the file, as the kernel has it mapped


class Library:
    """One of them. It stays loaded for as long as this object lives."""

    def __init__(self, native: _core.Library):
        self._native = native
        self.kind = native.kind
        self.path = native.path
        self.of_calling_thread = native.of_calling_thread

    def facts(self) -> LibraryFacts:
        """Everything it says, now. Some getters make a library that nobody used yet initialize itself; what
        could end the process is not asked."""
        one = self._native
        threads = one.threads
        return LibraryFacts(
            kind=one.kind,
            vendor=one.vendor,
            version=one.version,
            kernel=one.kernel,
            threading=one.threading,
            integer_bits=one.integer_bits or None,
            threads=threads,
            threads_getter=one.threads_getter if threads is not None else "",
            of_calling_thread=one.of_calling_thread,
            limits=one.limits,
            path=one.path,
        )

    @property
    def threads(self) -> int | None:
        """The library's own answer; None: it has none."""
        return self._native.threads

    def set_threads(self, threads: int) -> bool:
        """False: it cannot be told. Whether it heeds the number is another question."""
        return self._native.set_threads(threads)


class Libraries:
    """All of them, kept, and looked for again when a file was loaded or unloaded since. Loads nothing."""

    def __init__(self) -> None:
        self._native = _core.Libraries()
        self._searches = 0
        self._found: list[Library] = []

    def loaded(self) -> list[Library]:
        """In the order in which they are to be told a number of threads: some pass it on to OpenMP. The same
        list while nothing was loaded."""
        native = self._native.loaded()
        if self._native.searches != self._searches:
            self._searches = self._native.searches
            self._found = [Library(one) for one in native]
        return self._found
