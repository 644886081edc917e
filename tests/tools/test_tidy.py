"""tools/tidy.py: finds what is planted, says nothing of what is well, and looks at what is shipped alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULT = """#include <string>
#include <utility>
size_t f(std::string a) { std::string b = std::move(a); return a.size() + b.size(); }
"""


def run(folder: Path, sources: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".clang-tidy").write_bytes((ROOT / ".clang-tidy").read_bytes())
    commands = [{"directory": str(folder), "file": name, "command": f"g++ -c {name}"} for name in sources]
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "tidy.py", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_a_fault_is_found_and_named(tmp_path: Path) -> None:
    done = run(tmp_path, {"cpp/core/moved.cpp": FAULT, "cpp/core/well.cpp": "int f() { return 1; }\n"})
    assert done.returncode == 1
    assert "moved.cpp:3" in done.stdout
    assert "bugprone-use-after-move" in done.stdout
    assert "2 files, 1 with faults" in done.stdout


@pytest.mark.full
def test_what_is_well_and_what_is_a_test_say_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, {"cpp/core/well.cpp": "int f() { return 1; }\n", "cpp/tests/moved_test.cpp": FAULT})
    assert (done.returncode, done.stdout) == (0, "clang-tidy: 1 files, 0 with faults\n")
