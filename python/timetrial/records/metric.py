"""The table of metrics: what is measured, in which unit, which values are good, what people call it.

Whatever prints, exports, compares or remembers a metric reads it here; how the raced ones come from launches
is in analysis/raced.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Metric = Literal["step_time", "samples_per_s", "peak_memory"]  # what a race compares
RACED: tuple[Metric, ...] = get_args(Metric)


@dataclass(frozen=True)
class MetricKind:
    """`column`: its name where the unit stands in the name. `slug`: Bencher's measure; its own where it has
    one, the others come to be when they are first sent."""

    title: str
    unit: str
    good: Literal["lower", "higher"]
    less: str  # what a side with a smaller value is called
    more: str
    column: str
    slug: str
    definition: str


METRICS: dict[str, MetricKind] = {
    "step_time": MetricKind(
        title="step time",
        unit="ns",
        good="lower",
        less="faster",
        more="slower",
        column="step_time_ns",
        slug="latency",
        definition="what a step takes when nobody disturbs, as stamped around it",
    ),
    "samples_per_s": MetricKind(
        title="samples per second",
        unit="1/s",
        good="higher",
        less="slower",
        more="faster",
        column="samples_per_s",
        slug="samples-per-second",
        definition="samples of a step over its time, so that batch sizes can be raced",
    ),
    "peak_memory": MetricKind(
        title="peak memory",
        unit="bytes",
        good="lower",
        less="leaner",
        more="more memory",
        column="peak_memory_bytes",
        slug="peak-memory",
        definition="most private memory that was held while steady, without mapped files and what is shared, "
        "from the kernel",
    ),
    "accuracy": MetricKind(
        title="accuracy",
        unit="1",
        good="higher",
        less="less accurate",
        more="more accurate",
        column="accuracy",
        slug="accuracy",
        definition="share of the test images that a trained network names rightly",
    ),
}


def raced_words(joined: str = " or ") -> str:
    """'step_time, samples_per_s or peak_memory'."""
    return f"{', '.join(RACED[:-1])}{joined}{RACED[-1]}"
