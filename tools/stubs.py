"""Generates the stub of the compiled module; --check compares it with the committed one."""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path("python/timetrial/core/_core.pyi")


def generate() -> str:
    """The stub as pybind11-stubgen writes it for the installed module, sorted and formatted by ruff."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "timetrial.core._core", "--output-dir", folder]
        subprocess.run(command, check=True, capture_output=True, text=True)
        text = (Path(folder) / "timetrial" / "core" / "_core.pyi").read_text(encoding="utf-8")
    for ruff in (["check", "--fix-only"], ["format"]):
        command = [sys.executable, "-m", "ruff", *ruff, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
    return text


def main() -> int:
    """Writes the stub, or says how the committed one differs."""
    text = generate()
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text, encoding="utf-8")
        return 0
    committed = STUB.read_text(encoding="utf-8")
    if committed == text:
        return 0
    diff = difflib.unified_diff(
        committed.splitlines(), text.splitlines(), "committed", "generated", lineterm=""
    )
    print(
        "\n".join(diff),
        "\nThe compiled module changed: run `make stubs` and commit.",
        sep="\n",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
