"""What a race compares."""

from __future__ import annotations

from typing import Literal

Metric = Literal["step_time", "samples_per_s", "peak_memory"]

# With its unit and what it is, which the reference prints.
METRIC_WORDS: dict[Metric, tuple[str, str]] = {
    "step_time": ("ns", "what a step takes when nobody disturbs, as stamped around it; lower is better"),
    "samples_per_s": (
        "1/s",
        "samples of a step over its time, so that batch sizes can be raced; higher is better",
    ),
    "peak_memory": (
        "bytes",
        "most that was held while steady, without mapped files, from the kernel; lower is better",
    ),
}
