"""What the build says to a machine that it is not for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_other_processors_get_a_clear_word(tmp_path: Path) -> None:
    toolchain = tmp_path / "arm.cmake"
    toolchain.write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n", encoding="utf-8"
    )
    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path / "build"), f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.returncode != 0
    assert "timetrial needs Linux on x86-64; this is Linux on aarch64" in " ".join(done.stderr.split())


def test_make_names_what_the_machine_lacks() -> None:
    command = ["make", "machine", "CXX=/bin/false", "PYTHON=/bin/false"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "g++ 12 or newer" in done.stderr
    assert "Python 3.10 or newer" in done.stderr
    assert "sudo apt install g++ make python3-dev python3-venv" in done.stderr


def test_make_is_content_with_this_machine() -> None:
    subprocess.run(["make", "machine", f"PYTHON={sys.executable}"], cwd=ROOT, check=True, capture_output=True)
