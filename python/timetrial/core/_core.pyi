"""
The compiled half of timetrial.core.
"""

from __future__ import annotations

import collections.abc
import typing

import numpy
import numpy.typing

__all__: list[str] = [
    "WINDOW_CAPACITY",
    "Network",
    "Recorder",
    "clock_cost_ns",
    "create_recorder_file",
    "glorot_uniform",
    "layer_kinds",
    "now_ns",
    "permutation",
    "read_window",
    "uniform",
]

class Network:
    def __init__(
        self,
        nodes: list[typing.Any],
        batch_size: typing.SupportsInt | typing.SupportsIndex,
        input_shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    ) -> None: ...
    def activation_bytes(self) -> int: ...
    def batch_size(self) -> int: ...
    def bytes(self, node: str) -> dict[str, int]: ...
    def loss(self) -> str: ...
    def multiply_accumulates(self, node: str) -> dict[str, int]: ...
    def nodes(self) -> list[dict[str, typing.Any]]: ...
    def output(self) -> str: ...
    def parameter_count(self) -> int: ...

class Recorder:
    def __init__(
        self,
        fd: typing.SupportsInt | typing.SupportsIndex,
        capacity: typing.SupportsInt | typing.SupportsIndex = 0,
    ) -> None: ...
    def begin(
        self,
        window: typing.SupportsInt | typing.SupportsIndex,
        entries: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def end(self) -> tuple[int, int]: ...
    def stamp(self, boundary: typing.SupportsInt | typing.SupportsIndex = 1) -> None: ...
    def stamp_at(
        self,
        boundary: typing.SupportsInt | typing.SupportsIndex,
        time_ns: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    @property
    def capacity(self) -> int: ...

def clock_cost_ns() -> float: ...
def create_recorder_file(
    windows: typing.SupportsInt | typing.SupportsIndex, capacity: typing.SupportsInt | typing.SupportsIndex
) -> int: ...
def glorot_uniform(
    seed: typing.SupportsInt | typing.SupportsIndex,
    parameter: str,
    shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
) -> numpy.typing.NDArray[numpy.float32]: ...
def layer_kinds() -> list[str]: ...
def now_ns() -> int: ...
def permutation(
    seed: typing.SupportsInt | typing.SupportsIndex, stream: str, n: typing.SupportsInt | typing.SupportsIndex
) -> numpy.typing.NDArray[numpy.int64]: ...
def read_window(
    fd: typing.SupportsInt | typing.SupportsIndex, window: typing.SupportsInt | typing.SupportsIndex
) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64]]: ...
def uniform(
    seed: typing.SupportsInt | typing.SupportsIndex,
    stream: str,
    shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    low: typing.SupportsFloat | typing.SupportsIndex,
    high: typing.SupportsFloat | typing.SupportsIndex,
) -> numpy.typing.NDArray[numpy.float32]: ...

WINDOW_CAPACITY: int = 65536
