"""Where a step's time goes: one row per layer and direction, from the record of a profile launch.

A layer's time is its median over the profiled steps. `share` is of the sum of these medians, so shares add up
to 1. The step that was not profiled, measured in the same launch, stands beside the sum: it tells what the
clocks cost. Work per time is counted as for a whole step: 2 x multiply-accumulates; a gradient that nobody
needs (of the data in front of the first layer that learns) counts as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from timetrial.analysis.summary import beyond_peak
from timetrial.cautions import Caution
from timetrial.core import layer_traits
from timetrial.optimizers import kept_states
from timetrial.records.model import CaseRecord, Direction, LayerWork, ProfiledLayer

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
ALL_LAYERS = "*"  # the node of an update that one call makes for all layers

# Which passes of LayerWork a direction does.
_PASSES: dict[str, tuple[str, ...]] = {
    "forward": ("forward",),
    "backward": ("backward_data", "backward_weights"),
    "backward_data": ("backward_data",),
    "backward_weights": ("backward_weights",),
}
_F32 = 4
# A layer of this kind may be a change of shape alone, which moves nothing.
DISTURBED = 0.05  # the sum of medians and the median of sums of a quiet launch are nearer


@dataclass(frozen=True)
class Quartiles:
    """Of steps of one launch, in nanoseconds. Not a confidence interval: those steps are not independent."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: npt.ArrayLike) -> Quartiles:
        """Of at least one value."""
        low, median, high = np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75])
        return cls(float(low), float(median), float(high))

    @property
    def half_width(self) -> float:
        """Half of the distance between the quartiles, as a fraction of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


Limit = Literal["peak", "memory"]


@dataclass(frozen=True)
class Machine:
    """What was measured of it, at a case's threads. None: it was not, or no share of it is to be said."""

    peak_flops: float | None = None
    memory_bandwidth: float | None = None
    cache_bandwidth: float | None = None

    def least_ns(self, operations: int, moved: int | None) -> tuple[Limit | None, float | None]:
        """What these operations and bytes take at least, and which of the two decides: the roofline of
        Williams, Waterman and Patterson, CACM 52(4), 2009. None where one of them is not known."""
        if not self.peak_flops or not self.memory_bandwidth or not moved:
            return None, None
        by_peak, by_memory = 1e9 * operations / self.peak_flops, 1e9 * moved / self.memory_bandwidth
        return ("peak", by_peak) if by_peak > by_memory else ("memory", by_memory)


@dataclass(frozen=True)
class LayerRow:
    """A layer in one direction. None: there is no such work, or it cannot be known."""

    node: str  # ALL_LAYERS: one call for all
    kind: str  # of the node; "" for ALL_LAYERS
    direction: Direction
    time_ns: Quartiles
    share: float
    multiply_accumulates: int | None = None
    flops_per_s: float | None = None
    percent_of_peak: float | None = None
    bytes_per_s: float | None = (
        None  # where nothing is multiplied: the least traffic there can be, per second
    )
    bytes: int | None = None  # the least that must be read and written
    operations_per_byte: float | None = None  # two for a multiply-accumulate
    limit: Limit | None = None  # what keeps it from being faster: by its work and its bytes
    percent_of_limit: float | None = None


@dataclass(frozen=True)
class StepProfile:
    """A profiled case: its rows in the order of the network, and what they should add up to."""

    steps: int  # profiled
    rows: list[LayerRow]  # one per layer and direction
    layers_ns: float  # the rows' medians together
    profiled_step_ns: Quartiles  # of the sums of single steps
    plain_step_ns: Quartiles | None  # of the steps of the same launch that were not profiled
    plain_cpu_ns: float | None  # CPU time of such a step, all threads: without what others took in between
    peak_flops: float | None  # measured, at the case's threads
    multiply_accumulates: int | None  # of a step
    memory_bandwidth: float | None = None  # bytes per second, measured, at the case's threads
    cache_bandwidth: float | None = None  # the same of their second caches
    warnings: list[str] = field(default_factory=list)  # what a reader must know

    @property
    def overhead(self) -> float | None:
        """By how much a profiled step is longer than a plain one, as a fraction."""
        if self.plain_step_ns is None:
            return None
        return self.profiled_step_ns.median / self.plain_step_ns.median - 1

    @property
    def peak_ns(self) -> float | None:
        """What a step would take at 100 % of the measured peak."""
        if not self.peak_flops or not self.multiply_accumulates:
            return None
        return 2e9 * self.multiply_accumulates / self.peak_flops

    def flops_per_s(self, ns: float) -> float | None:
        """Of a whole step that takes so long."""
        return 2e9 * self.multiply_accumulates / ns if self.multiply_accumulates and ns else None

    def percent_of_peak(self, ns: float) -> float | None:
        """Of a whole step that takes so long."""
        return 100 * self.peak_ns / ns if self.peak_ns is not None and ns else None


def profile_of(
    case: CaseRecord,
    layers: Sequence[ProfiledLayer],
    times_ns: npt.NDArray[np.int64],
    plain_ns: npt.NDArray[np.int64],
    plain_cpu_ns: float | None,
    machine: Machine,
) -> StepProfile:
    """`times_ns`: by (layer, profiled step); `plain_ns`: durations of the steady steps."""
    total = float(np.median(times_ns, axis=1).sum())
    work = {layer.name: layer for layer in case.layers}
    rows = [
        _row(layer, work.get(layer.node), times, total, case, machine)
        for layer, times in zip(layers, times_ns, strict=True)
    ]
    places = {layer.name: place for place, layer in enumerate(case.layers)}
    rows.sort(key=lambda row: (places.get(row.node, len(places)), DIRECTIONS.index(row.direction)))
    sums = Quartiles.of(times_ns.sum(axis=0))
    most = max((row.percent_of_peak for row in rows if row.percent_of_peak is not None), default=None)
    return StepProfile(
        steps=times_ns.shape[1],
        rows=rows,
        layers_ns=total,
        profiled_step_ns=sums,
        plain_step_ns=Quartiles.of(plain_ns) if len(plain_ns) else None,
        plain_cpu_ns=plain_cpu_ns,
        peak_flops=machine.peak_flops,
        multiply_accumulates=case.multiply_accumulates,
        memory_bandwidth=machine.memory_bandwidth,
        cache_bandwidth=machine.cache_bandwidth,
        warnings=[*_disturbed(total, sums.median), *beyond_peak(most)],
    )


def _row(
    layer: ProfiledLayer,
    work: LayerWork | None,
    times_ns: npt.NDArray[np.int64],
    total_ns: float,
    case: CaseRecord,
    machine: Machine,
) -> LayerRow:
    time = Quartiles.of(times_ns)
    passes = _PASSES.get(layer.direction, ())
    products = sum(work.multiply_accumulates.get(one, 0) for one in passes) if work else 0
    flops = 2e9 * products / time.median if products and time.median else None
    moved = _least_bytes(layer, work, case)
    limit, least_ns = machine.least_ns(2 * products, moved)
    peak_flops = machine.peak_flops
    return LayerRow(
        node=layer.node,
        kind=work.kind if work else "",
        direction=layer.direction,
        time_ns=time,
        share=time.median / total_ns if total_ns else 0.0,
        multiply_accumulates=products or None,
        flops_per_s=flops,
        percent_of_peak=100 * flops / peak_flops if flops and peak_flops else None,
        bytes_per_s=1e9 * moved / time.median if moved and time.median and not products else None,
        bytes=moved,
        operations_per_byte=2 * products / moved if products and moved else None,
        limit=limit,
        percent_of_limit=100 * least_ns / time.median if least_ns and time.median else None,
    )


def _least_bytes(layer: ProfiledLayer, work: LayerWork | None, case: CaseRecord) -> int | None:
    """What the row reads and writes at least; None where that is not known."""
    if layer.direction == "update":
        parameters = case.parameters if layer.node == ALL_LAYERS else work.parameters if work else None
        # Reads gradient and weight, writes the weight; each state is read and written too.
        if not parameters:
            return None
        return (3 + 2 * len(kept_states(case.optimizer))) * _F32 * parameters
    if work is None or layer_traits(work.kind).moves_nothing:
        return None
    passes = _PASSES.get(layer.direction, ())
    products = work.multiply_accumulates
    if products.get("forward") and not any(products.get(one) for one in passes):
        return None  # a gradient that nobody needs
    return sum(work.bytes.get(one, 0) for one in passes) or None


def _disturbed(total_ns: float, typical_sum_ns: float) -> list[str]:
    """Medians of layers leave disturbances out that fall on another layer in each step; sums do not."""
    if typical_sum_ns <= (1 + DISTURBED) * total_ns:
        return []
    return [Caution.LAYERS_DISTURBED.words(percent=f"{100 * total_ns / typical_sum_ns:.0f}")]
