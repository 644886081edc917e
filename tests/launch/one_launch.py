"""A parent in a process of its own, to be killed: one_launch.py FOLDER BACKEND [setting=value ...]"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from launching import SHORT, make_plan

from timetrial.launch import run_launch

if __name__ == "__main__":
    folder, backend, *settings = sys.argv[1:]
    plan = make_plan(
        Path(folder),
        backend,
        settings=dict(word.split("=", 1) for word in settings),
        measure=dataclasses.replace(SHORT, min_ns=60_000_000_000, budget_ns=60_000_000_000),
    )
    record = run_launch(plan)
    print(record.outcome, record.reason)
