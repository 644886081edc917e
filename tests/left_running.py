"""What a test may have left running."""

from __future__ import annotations

from pathlib import Path


def command_lines_with(*words: str) -> list[str]:
    """Of all processes whose command line has all of these."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        found += [line] if all(word in line for word in words) else []
    return found
