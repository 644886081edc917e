"""clang-tidy over the C++ that is shipped, several files at a time: tidy.py BUILD_FOLDER [FILE...]

Which checks: .clang-tidy. Exit code 1 with what was found. The tests are left to the compiler's warnings and
the sanitizers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# clang has no omp.h of its own, and cannot read gcc's folder of headers.
NEEDS_GCC = ("cpp/backends/onednn/backend.cpp",)


def sources(folder: Path) -> list[str]:
    """The files of ours that were configured to be compiled."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    files = {os.path.relpath(one["file"]) for one in commands}
    return sorted(
        file
        for file in files
        if file.startswith("cpp/") and not file.startswith("cpp/tests/") and file not in NEEDS_GCC
    )


def looked_at(folder: Path, file: str) -> str:
    """What clang-tidy says of a file; empty: nothing."""
    program = Path(sys.executable).with_name("clang-tidy")
    done = subprocess.run(
        [program, "-p", folder, "--quiet", file], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """0 where nothing was found."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    files = sys.argv[2:] or sources(folder)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [text for text in pool.map(lambda file: looked_at(folder, file), files) if text]
    print("\n".join([*found, f"clang-tidy: {len(files)} files, {len(found)} with faults"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
