"""What the supervisor's looks cost, and what they do to a step."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from figures import Figure

import timetrial as tt
from timetrial.core.supervised import Supervised
from timetrial.records.samples import read_samples

HZ = 20
THREADS = (2, 17)  # of a native contender with two, and of a framework with its pools
SECONDS = 5
CORE_PERCENT = 0.5
STEP_UNITS = 900  # of null's work: about a millisecond

PROGRAM = """
import sys, threading, time
def wake():
    while True: time.sleep(0.01)
for _ in range(int(sys.argv[1]) - 1): threading.Thread(target=wake, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


def sampling_figures() -> list[Figure]:
    """Processor time of the looks, then a race of a step with them against one without."""
    costs = [
        Figure.at_most(f"{HZ} looks a second, {n} threads", CORE_PERCENT, _percent(n), "% of a core", 3)
        for n in THREADS
    ]
    return [*costs, _effect()]


def _percent(threads: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, str(threads), str(SECONDS)]
        with Supervised(command, samples=(Path(folder), HZ)) as process:
            process.wait()
        samples = read_samples(Path(folder))
    assert samples is not None
    return 100 * float(np.ptp(samples["own_cpu_ns"])) / float(np.ptp(samples["time_ns"]))


def _effect() -> Figure:
    """Whole launches in alternation: in turns, looks at the one that is stopped would disturb the other."""
    with tempfile.TemporaryDirectory() as folder:
        sides = [{"backend": "null", "samples.hz": hz, "null.work_units": STEP_UNITS} for hz in (0, HZ)]
        (duel,) = tt.race(
            *sides, network="mlp", threads=1, isolated=True, confirm=False, results=folder, quiet=True
        ).duels
    effect = duel.effect
    if effect is None:
        return Figure("a step of 1 ms, looked at", "the same", str(duel.reason), met=False)
    words = f"{100 * effect.estimate:+.2f} % [{100 * effect.low:+.2f}, {100 * effect.high:+.2f}]"
    return Figure("a step of 1 ms, looked at", "0 in the interval", words, effect.low <= 0 <= effect.high)
