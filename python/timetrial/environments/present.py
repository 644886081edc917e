"""What is installed, as an experiment names it."""

from __future__ import annotations

from timetrial.environments.catalog import shipped_frameworks
from timetrial.environments.locate import locate
from timetrial.errors import Unavailable


def present() -> dict[str, tuple[str, ...]]:
    """Modes by "name@version": every version that is installed or that the running interpreter has; and those
    that only wait for a path of the user's, as rows that say so."""
    found = {}
    for framework in shipped_frameworks().values():
        for version in framework.versions:
            try:
                locate(framework, version.version, None)
            except Unavailable:
                if not version.user_path:
                    continue
            found[f"{framework.name}@{version.version}"] = version.modes
    return found
