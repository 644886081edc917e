"""House rule on file sizes: none over 600 lines, 90 % under 400. Prints the table, fails where broken."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

CODE = (".py", ".cpp", ".hpp", ".h")
GENERATED = ("python/timetrial/core/_core.pyi",)
CAP, MOST = 600, 400


def main() -> int:
    """0 if the rule holds, 1 with the offenders named."""
    names = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    files = [Path(name) for name in names if name.endswith(CODE) and name not in GENERATED]
    sizes = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files if file.exists()}
    ordered = sorted(sizes.values())
    tenth = ordered[int(0.9 * (len(ordered) - 1))]
    median = statistics.median(ordered)
    print(f"{len(sizes)} files, median {median:.0f} lines, 90 % at most {tenth}, largest {ordered[-1]}")
    for file, lines in sorted(sizes.items(), key=lambda item: -item[1]):
        if lines > CAP:
            print(f"{file}: {lines} lines, over the cap of {CAP}", file=sys.stderr)
    return int(ordered[-1] > CAP or tenth > MOST)


if __name__ == "__main__":
    sys.exit(main())
