"""Where the time of `make test` goes: runs its stages, and prints and keeps a table of them.

    python tools/times.py start                     forgets the stages so far
    python tools/times.py run STAGE -- COMMAND...   runs a command and adds what it took to STAGE
    python tools/times.py report                    the table; kept in build/times/times.json

Beside every figure stands that of the run before, where there was one. The standard library alone: the first
stage makes the environment.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path("build/times")
STAGES = FOLDER / "stages.jsonl"  # one line per command that ran
KEPT = FOLDER / "times.json"
SLOWEST = 10
# What stands behind is of one test or machine: paths, versions.
_KIND = re.compile(r"[^(\n]*")


def start() -> int:
    """A run begins: what an earlier one left is no part of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in [STAGES, *FOLDER.glob("*.xml")]:
        file.unlink(missing_ok=True)
    return 0


def run(stage: str, command: list[str]) -> int:
    """The command's exit status, as a shell says it. Ctrl-C reaches the command, whose end is waited for."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    before = time.monotonic()
    child = subprocess.Popen(command)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = child.wait()
    signal.signal(signal.SIGINT, previous)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = {
        "stage": stage,
        "seconds": round(time.monotonic() - before, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "status": status,
    }
    with STAGES.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")
    return status if status >= 0 else 128 - status


@dataclass(frozen=True)
class Test:
    """One test of a JUnit file. `skipped`: its reason, None where it ran."""

    suite: str  # the file's name: "pytest", "ctest-debug"
    name: str
    folder: str
    seconds: float
    skipped: str | None


def tests() -> Iterator[Test]:
    """All of the run, from the JUnit files that pytest and ctest wrote."""
    for file in sorted(FOLDER.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            skip = case.find("skipped")
            name, module = str(case.get("name")), case.get("classname", "")
            yield Test(
                suite=file.stem,
                name=name
                if name == module
                else f"{module.removeprefix('tests.')}::{name}",  # ctest: twice the same
                folder="/".join(module.split(".")[:2]),
                seconds=float(case.get("time") or 0.0),
                skipped=None if skip is None else skip.get("message") or "no reason given",
            )


def measured() -> dict[str, Any]:
    """What the files of this run say."""
    stages: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    failed = []
    for line in STAGES.read_text(encoding="utf-8").splitlines() if STAGES.is_file() else []:
        one = json.loads(line)
        stages[one["stage"]][0] += one["seconds"]
        stages[one["stage"]][1] += one["cpu_seconds"]
        if one["status"]:
            failed.append(one["stage"])
    found = list(tests())
    folders: dict[str, float] = defaultdict(float)
    for test in found:
        if test.suite.startswith("pytest"):
            folders[test.folder] += test.seconds
    ran = sum(test.skipped is None for test in found)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "commit": _commit(),
        "machine": f"{_cpu()}, {os.cpu_count()} CPUs",
        "stages": {name: {"seconds": wall, "cpu_seconds": cpu} for name, (wall, cpu) in stages.items()},
        "folders": dict(sorted(folders.items(), key=lambda item: -item[1])),
        "slowest": [
            {"test": test.name, "suite": test.suite, "seconds": test.seconds}
            for test in sorted(found, key=lambda test: -test.seconds)[:SLOWEST]
        ],
        "tests": {"ran": ran, "skipped": len(found) - ran},
        "skips": dict(Counter(_kind(test.skipped) for test in found if test.skipped).most_common()),
        "failed": failed,
    }


def report() -> int:
    """Prints the table and keeps it; the one before is kept beside it until the next."""
    now = measured()
    try:
        before = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = None
    if not isinstance(before, dict):  # none yet, or one that was cut off
        before = {}
    print("\n".join(table(now, before)))
    if not now["failed"]:  # half a run is nothing to compare with
        KEPT.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    return 0


def table(now: dict[str, Any], before: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    earlier = before.get("stages", {})
    yield f"\nWhere the time went, in minutes ({now['machine']}; before: {before.get('date', 'no run yet')})"
    yield _line("stage", "wall", "CPU", "before")
    for name, stage in now["stages"].items():
        yield _line(name, _minutes(stage["seconds"]), _minutes(stage["cpu_seconds"]), _earlier(earlier, name))
    totals = [sum(stage[key] for stage in now["stages"].values()) for key in ("seconds", "cpu_seconds")]
    total_before = sum(stage["seconds"] for stage in earlier.values())
    yield _line("all", *map(_minutes, totals), _minutes(total_before) if earlier else "-")
    yield ""
    yield _line("pytest, by folder (sum of its tests)", "tests'", "", "before")
    for name, seconds in now["folders"].items():
        then = before.get("folders", {}).get(name)
        yield _line(name, _minutes(seconds), "", "-" if then is None else _minutes(then))
    yield f"\nThe {SLOWEST} slowest tests, in seconds"
    for one in now["slowest"]:
        yield f"{one['seconds']:8.1f}  {one['suite']}: {one['test']}"
    yield f"\n{now['tests']['ran']} tests ran, {now['tests']['skipped']} were skipped:"
    for reason, count in now["skips"].items():
        yield f"{count:8d}  {reason}"
    if now["failed"]:
        yield f"\nFAILED: {', '.join(dict.fromkeys(now['failed']))}"


def _line(name: str, wall: str, cpu: str, before: str) -> str:
    return f"{name:<40}{wall:>8}{cpu:>8}{before:>8}"


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def _earlier(stages: dict[str, Any], name: str) -> str:
    return _minutes(stages[name]["seconds"]) if name in stages else "-"


def _kind(reason: str) -> str:
    found = _KIND.match(reason)
    return found[0].strip() if found else reason


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main(words: list[str]) -> int:
    """As the head of this file says."""
    match words:
        case ["start"]:
            return start()
        case ["run", stage, "--", *command] if command:
            return run(stage, command)
        case ["report"]:
            return report()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
