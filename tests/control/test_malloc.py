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

# Takes and gives back memory in every step: glibc maps such an array anew each time, page by page.
STEP = """
import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
SIZE = {size}

def make():
    def step():
        memory = libc.malloc(SIZE)
        ctypes.memset(memory, 1, SIZE)
        libc.free(memory)
        return 1.0
    return step
"""


def faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], size: int = 40_000_000
) -> float:
    """For each page that is taken."""
    (tmp_path / "mine.py").write_text(STEP.format(size=size))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / f"launch{len(settings)}"
    record = run_launch(make_plan(folder, "mine:make", network="none", settings=settings))
    assert record.outcome == "ok", words(record)
    names = (malloc.WHOLE, *malloc.NAMES)
    found = {one.name: (one.effective, one.status) for one in record.settings if one.name in names}
    assert found == {name: (value, "applied") for name, value in settings.items()}
    counted = record.witnesses["page_faults_per_step"]
    assert counted is not None
    return counted / (size / 4096)


def test_page_faults_are_counted_and_the_settings_end_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults(tmp_path, monkeypatch, {}) > 0.9
    assert faults(tmp_path, monkeypatch, ASKED) < 0.1


@pytest.mark.effect("malloc")
def test_keep_ends_page_faults_and_default_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(tmp_path, monkeypatch, {"malloc": "default"}) > 0.9
    (tmp_path / "kept").mkdir()
    assert faults(tmp_path / "kept", monkeypatch, {"malloc": "keep"}) < 0.1


@pytest.mark.parametrize("whole", ["default", "keep"])
def test_two_words_for_the_allocator_are_refused(whole: str) -> None:
    settings = {"malloc": whole, "malloc.mmap_max": "0"}
    words = rf"malloc={whole} beside malloc\.mmap_max=0: both say how the allocator behaves\. Leave out"
    with pytest.raises(InputError, match=words):
        malloc.check(settings)


def test_another_allocator_is_no_mismatch_of_what_nobody_asked() -> None:
    """malloc=keep is there without asking in a race: the user's own choice of another one stands, and is
    said."""
    kept = malloc.variables_of({"malloc": "keep"})
    assert malloc.judge("malloc", "keep", kept, []).status == "applied"
    assert malloc.judge("malloc", "keep", {"PATH": "/bin"}, []).status == "ignored"
    assert malloc.judge("malloc", "default", {"PATH": "/bin"}, []).status == "applied"
    other = malloc.judge("malloc", "keep", kept, [Path("/usr/lib/libjemalloc.so.2")])
    assert (other.effective, other.status) == ("what libjemalloc.so.2 does", "adjusted")


@pytest.mark.effect("malloc.mmap_max")
@pytest.mark.effect("malloc.mmap_threshold")
@pytest.mark.effect("malloc.top_pad")
@pytest.mark.effect("malloc.trim_threshold")
@pytest.mark.parametrize(
    ("beside", "name", "value"),
    [
        # With another setting glibc leaves the threshold of maps where it is (mallopt(3)).
        ("malloc.trim_threshold", "malloc.mmap_max", "0"),
        ("malloc.trim_threshold", "malloc.mmap_threshold", "30000000"),
        # In the heap its end is given back, or not.
        ("malloc.mmap_max", "malloc.top_pad", "100000000"),
        ("malloc.mmap_max", "malloc.trim_threshold", "1000000000"),
    ],
)
def test_each_of_them_ends_page_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, name: str, value: str
) -> None:
    """Beside one that does not by itself."""
    without = {beside: ASKED[beside]}
    assert faults(tmp_path, monkeypatch, without, 20_000_000) > 0.9
    assert faults(tmp_path, monkeypatch, {**without, name: value}, 20_000_000) < 0.1


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
