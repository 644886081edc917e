"""Whether green is green on a busy machine: the everyday tests, again and again, two suites side by side.

    python tools/loaded.py RUNS     on what `make test` has built; stops at the first run that fails

Each suite is the other's load; the last of an odd number has two busy programs beside it instead. What a run
printed is kept in build/loaded.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path("build/loaded").absolute()
BUSY = [sys.executable, "-c", "while True: pass"]
# ctest writes into the build folder: not two of them at once.
_CTEST = threading.Lock()


def run(number: int) -> bool:
    """One suite; whether it was green. Prints a line."""
    began = time.monotonic()
    with _CTEST:
        failed = [] if _make("ctest", number) else ["ctest"]
    failed += [] if _make("pytest", number) else ["pytest"]
    minutes = (time.monotonic() - began) / 60
    print(f"run {number}: {', '.join(failed) or 'green'}, {minutes:.1f} min", flush=True)
    return not failed


def _make(target: str, number: int) -> bool:
    """Another run's reports, and those of `make test`, stay as they are."""
    reports = FOLDER / str(number)
    reports.mkdir(parents=True, exist_ok=True)
    with (reports / f"{target}.txt").open("w") as output:
        command = ["make", target, f"TIMES={reports}"]
        return subprocess.run(command, stdout=output, stderr=output, check=False).returncode == 0


def main(runs: int) -> int:
    """0 if all were green."""
    for first in range(1, runs + 1, 2):
        pair = range(first, min(first + 2, runs + 1))
        beside = [subprocess.Popen(BUSY) for _ in range(2)] if len(pair) == 1 else []
        try:
            with ThreadPoolExecutor(2) as pool:
                green = list(pool.map(run, pair))
        finally:
            for program in beside:
                program.kill()
        if not all(green):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
