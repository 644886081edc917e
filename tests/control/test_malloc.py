"""The settings malloc.*, and the page faults that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import malloc
from timetrial.errors import InputError
from timetrial.launch import run_launch

ASKED = {"malloc.top_pad": "100000000", "malloc.mmap_max": "0", "malloc.trim_threshold": "1000000000"}

# Takes and gives back 40 MB in every step: glibc maps such an array anew each time, page by page.
STEP = """
import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
SIZE = 40_000_000

def make():
    def step():
        memory = libc.malloc(SIZE)
        ctypes.memset(memory, 1, SIZE)
        libc.free(memory)
        return 1.0
    return step
"""


def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> float:
    (tmp_path / "mine.py").write_text(STEP)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / f"launch{len(settings)}"
    record = run_launch(make_plan(folder, "mine:make", network="none", settings=settings))
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings if one.name in malloc.NAMES}
    assert found == {name: (value, "applied") for name, value in settings.items()}
    counted = record.witnesses["page_faults_per_step"]
    assert counted is not None
    return counted


def test_page_faults_are_counted_and_the_settings_end_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = 40_000_000 / 4096
    assert faults(tmp_path, monkeypatch, {}) > 0.9 * pages
    assert faults(tmp_path, monkeypatch, ASKED) < 0.1 * pages


@pytest.mark.parametrize("value", ["-1", "1e9", "256MB", "", "99999999999"])
def test_bad_values(value: str) -> None:
    case = Case("null", workload("mlp"), settings={"malloc.top_pad": value})
    with pytest.raises(InputError, match="expected a whole number of bytes from 0"):
        validate_settings(case, resolve(case))


def test_it_is_what_the_process_was_started_with() -> None:
    name = "malloc.top_pad"
    given = {malloc.VARIABLES[name]: "5"}
    assert malloc.judge(name, "5", given, []).status == "applied"
    assert malloc.judge(name, "5", {"PATH": "/bin"}, []).status == "ignored"
    assert malloc.judge(name, "5", {}, []).status == "unverifiable"
    other = malloc.judge(name, "5", given, [Path("/usr/lib/libjemalloc.so.2")])
    assert (other.status, "libjemalloc.so.2" in other.how_read) == ("ignored", True)
