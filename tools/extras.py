"""Prints the requirements of extras of pyproject.toml, for pip: it installs no extra without its project."""

from __future__ import annotations

import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries a copy
    from pip._vendor import tomli as tomllib


def requirements(*extras: str) -> list[str]:
    """All requirements of `extras`, each once, without spaces: a shell splits them where they were joined."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [need for extra in extras for need in project["optional-dependencies"][extra]]
    return list(dict.fromkeys(re.sub(r"\s+", "", need) for need in listed))


if __name__ == "__main__":
    print(*requirements(*sys.argv[1:]))
