"""Whether green is green on a busy machine: the everyday tests, again and again, two suites side by side.

    python tools/loaded.py RUNS     on what `make test` has built; stops at the first run that fails

Each suite is the other's load; the last of an odd number has two busy programs beside it instead. What a run
printed is kept in build/loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

FOLDER = Path("build/loaded")
PYTEST = [".venv/bin/python", "-m", "pytest", "-q"]
CTEST = ["ctest", "-LE", "full", "-j", "2", "--no-tests=error", "-Q"]
STAGES: dict[str, Sequence[str]] = {
    "GoogleTest": [*CTEST, "--test-dir", "build/editable"],
    "sanitizers": [*CTEST, "--preset", "debug"],
    "pytest, all cores": [*PYTEST, "-n", "2", "--dist", "worksteal", "-m", "not alone and not full"],
    "pytest, one by one": [*PYTEST, "-m", "alone and not full"],
}
PASSIVE = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"}  # as the Makefile has it
BUSY = [sys.executable, "-c", "while True: pass"]
# ctest writes into the build folder: not two of them at once.
_CTEST = threading.Lock()


def run(number: int) -> bool:
    """One suite; whether it was green. Prints a line."""
    began, failed = time.monotonic(), []
    for stage, command in STAGES.items():
        with (FOLDER / f"{number} {stage}.txt").open("w") as output:
            if command[0] == "ctest":
                with _CTEST:
                    status = _status(command, PASSIVE, output)
            else:
                status = _status(command, {}, output)
        failed += [stage] * (status != 0)
    minutes = (time.monotonic() - began) / 60
    print(f"run {number}: {', '.join(failed) or 'green'}, {minutes:.1f} min", flush=True)
    return not failed


def _status(command: Sequence[str], more: Mapping[str, str], output: IO[str]) -> int:
    path = f"{Path('.venv/bin').absolute()}:{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "TIMETRIAL_REQUIRE": "quick", **more}
    return subprocess.run(
        command, env=variables, stdout=output, stderr=subprocess.STDOUT, check=False
    ).returncode


def main(runs: int) -> int:
    """0 if all were green."""
    FOLDER.mkdir(parents=True, exist_ok=True)
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
