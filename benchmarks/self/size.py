"""How long commands take on much: a dry run of 10,000 cases, the table and details of 3 x 1,000,000 steps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import Figure

from timetrial.records.files import mark_of
from timetrial.records.model import Segment
from timetrial.records.store import (
    LOSSES_FILE,
    RECORD_FILE,
    STAMPS_FILE,
    launch_folders,
    read_launch,
    to_bytes,
)

TIMETRIAL = [sys.executable, "-m", "timetrial.cli.main"]
STEPS = 1_000_000
STEP_NS = 50_000
CASES = ("backend=eigen,null,onednn,reference,pytorch", "threads=1,2,3,4,5")  # times 400 batch sizes


def size_figures() -> list[Figure]:
    """Best of three, whole commands: nobody else's time is in them."""
    sizes = "batch_size=" + ",".join(map(str, range(1, 401)))
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        words = ["network=mlp", "backend=null", "threads=1", "launches=3", "isolated=true"]
        _seconds("run", *words, "--results", folder)
        (experiment,) = results.iterdir()
        for launch in launch_folders(experiment):
            if launch.parent.name == "launches":
                _enlarge(launch)
        show = min(_seconds("show", str(experiment)) for _ in range(3))
    dry_run = min(_seconds("run", "network=mlp", *CASES, sizes, "--dry-run") for _ in range(3))
    return [
        Figure.at_most("show of 3 launches of 1,000,000 steps", 2, show, "s"),
        Figure.at_most("dry run of 10,000 cases", 5, dry_run, "s"),
    ]


def _seconds(*words: str) -> float:
    begin = time.perf_counter()
    subprocess.run([*TIMETRIAL, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _enlarge(launch: Path) -> None:
    """Another launch's steps in place of its own, with a record that agrees: one million, one in a thousand
    twice as long."""
    rng = np.random.default_rng(int(launch.name))
    record = read_launch(launch)
    segments, stamps = [], []
    for kind, steps in (("first", 1), ("steady", STEPS)):
        long = 1 + (rng.random(steps) < 0.001)
        own = np.concatenate([[0], np.cumsum(STEP_NS * (1 + 0.01 * rng.standard_normal(steps)) * long)])
        boundaries = np.ones(len(own), np.uint64)
        boundaries[0] = 0
        begins = 10**12 * len(segments)
        first = sum(map(len, stamps))
        segments.append(
            Segment(
                kind=kind,
                steps=steps,
                first_stamp=first,
                stamps=len(own),
                first_loss=len(segments),
                losses=steps,
            )
        )
        stamps.append(((own + begins).astype(np.uint64) << np.uint64(8)) | boundaries)
    files = {
        STAMPS_FILE: np.concatenate(stamps).astype("<u8").tobytes(),
        LOSSES_FILE: np.full(STEPS + 1, 0.5).astype("<f8").tobytes(),
    }
    for name, data in files.items():
        (launch / name).write_bytes(data)
    changed = {
        "segments": segments,
        "turns": [],
        "files": {name: mark_of(data) for name, data in files.items()},
    }
    (launch / RECORD_FILE).write_bytes(to_bytes(record.model_copy(update=changed)))
