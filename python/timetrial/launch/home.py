"""What a contender wrote into its home folder, which goes with the launch: no cache there is ever warm."""

from __future__ import annotations

from pathlib import Path

from timetrial.launch.left import files_below, printable

_NAMED = 3  # files in the warning


def written_to_home(home: Path) -> list[str]:
    """A warning that names the biggest files; none where nothing was written."""
    files = sorted(((size, path) for path, size in files_below(home) if size), reverse=True)
    if not files:
        return []
    total = sum(size for size, _ in files)
    named = ", ".join(f"{printable(path.relative_to(home))} {size}" for size, path in files[:_NAMED])
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return [f"it wrote {total} bytes into its home folder, which every launch gets anew: {named}{more}"]
