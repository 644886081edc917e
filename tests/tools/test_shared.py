"""A folder for all workers is made by one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import shared

SCRIPT = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from shared import made_once

def make(folder):
    folder.mkdir()
    with open(sys.argv[3], "a") as calls:
        calls.write("made\\n")
    time.sleep(0.2)
    (folder / "all of it").touch()

assert (made_once(Path(sys.argv[2]), make) / "all of it").is_file()
"""


def test_of_several_at_once_one_makes_it_and_the_others_wait(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-c",
        SCRIPT,
        str(Path(shared.__file__).parent),
        *map(str, (tmp_path / "it", tmp_path / "calls")),
    ]
    several = [subprocess.Popen(words) for _ in range(4)]
    assert [one.wait() for one in several] == [0] * 4
    assert (tmp_path / "calls").read_text() == "made\n"


def test_one_that_was_left_half_made_is_made_anew(tmp_path: Path) -> None:
    def broken(folder: Path) -> None:
        folder.mkdir()
        (folder / "half of it").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        shared.made_once(tmp_path / "it", broken)
    made = shared.made_once(tmp_path / "it", Path.mkdir)
    assert not (made / "half of it").exists()
