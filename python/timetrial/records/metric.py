"""What a race compares."""

from __future__ import annotations

from typing import Literal

Metric = Literal["step_time", "samples_per_s", "peak_memory"]
