"""The Python interpreters in which frameworks run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from timetrial.errors import InputError, Unavailable

# In the syntax of Python 3.6. Finds modules without importing them; pkg_resources-free.
_ASK = """
import json, sys
from importlib.util import find_spec
try:
    from importlib.metadata import version
except ImportError:
    version = None
answer = {}
for pair in sys.argv[1:]:
    module, _, distribution = pair.partition("=")
    if find_spec(module) is None:
        answer[module] = None
        continue
    try:
        answer[module] = version(distribution) if version else "unknown"
    except Exception:
        answer[module] = "unknown"
print(json.dumps({"version": sys.version.split()[0], "modules": answer}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One interpreter. `running`: the one that runs timetrial itself."""

    executable: Path
    running: bool

    def versions(self, modules: tuple[tuple[str, str], ...]) -> dict[str, str | None]:
        """Module -> version of the distribution it comes from; None where there is no such module."""
        versions: dict[str, str | None] = _ask(self.executable, modules)["modules"]
        return versions

    @property
    def version(self) -> str:
        """As in '3.11.7'."""
        return str(_ask(self.executable, ())["version"])


def find_interpreter(word: str | None) -> Interpreter:
    """A path, a command on PATH, or None for the running interpreter."""
    if word is None:
        return Interpreter(Path(sys.executable), running=True)
    found = shutil.which(str(Path(word).expanduser()))
    if found is None:
        raise InputError(f"python={word!r}: there is no such interpreter; give a path or a command on PATH")
    # Not resolved: the path of a virtual environment's python is what makes it one.
    executable = Path(found).absolute()
    return Interpreter(executable, running=executable == Path(sys.executable))


@lru_cache(maxsize=64)
def _ask(executable: Path, modules: tuple[tuple[str, str], ...]) -> dict[str, dict[str, str | None]]:
    pairs = [f"{module}={distribution}" for module, distribution in modules]
    try:
        done = subprocess.run(
            [str(executable), "-c", _ASK, *pairs], capture_output=True, text=True, timeout=60, check=True
        )
        answer: dict[str, dict[str, str | None]] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        words = getattr(error, "stderr", None) or str(error)
        raise Unavailable(f"{executable} is no working Python interpreter: {words.strip()[-300:]}") from error
    return answer
