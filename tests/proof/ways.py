"""For what a contender is launched, for tests of networks that differ in what is minimized."""

from __future__ import annotations

import pytest

# Another task, or the end of a timed part, is judged by the same court: those need one network.
PURPOSES_AND_TASKS = [
    ("proof", "train"),
    ("speed", "train"),
    *(
        pytest.param(purpose, task, marks=pytest.mark.full)
        for purpose in ("proof", "speed")
        for task in ("gradient", "forward")
    ),
]
