"""The setting memory.huge_pages: refused by the kernel or asked for by glibc, and seen in the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import huge_pages
from timetrial.control.huge_pages import NAME, Seen
from timetrial.errors import Unavailable
from timetrial.launch import run_launch

MACHINE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
GIVES = MACHINE.exists() and "[never]" not in MACHINE.read_text(encoding="utf-8")
TOLD = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

# Fills 40 MB in every step, with an array that malloc gives, or that it maps itself and wants in huge pages.
STEP = """
import ctypes, mmap

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
SIZE = 40_000_000
ONES = b"1" * SIZE

def make():
    def step():
        memory = libc.malloc(SIZE)
        ctypes.memset(memory, 1, SIZE)
        libc.free(memory)
        return 1.0
    return step

def make_own():
    def step():
        memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory.write(ONES)
        return 1.0
    return step
"""


def faults(folder: Path, monkeypatch: pytest.MonkeyPatch, maker: str, word: str) -> float:
    """Of a step, by the kernel: a huge page is one instead of 512."""
    folder.mkdir()
    (folder / "mine.py").write_text(STEP)
    monkeypatch.chdir(folder)
    settings = {} if word == "-" else {NAME: word}
    record = run_launch(make_plan(folder / "launch", f"mine:{maker}", network="none", settings=settings))
    assert record.outcome == "ok", words(record)
    for one in record.settings:
        if one.name == NAME:
            assert (one.effective, one.status) == (word, "applied")
    counted = record.witnesses["page_faults_per_step"]
    assert counted is not None
    return counted


@pytest.mark.effect("memory.huge_pages")
@pytest.mark.skipif(not GIVES, reason="machine: no huge pages for anyone")
def test_malloc_asks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = faults(tmp_path / "never", monkeypatch, "make", "never")
    huge = faults(tmp_path / "madvise", monkeypatch, "make", "madvise")
    assert small > 0.9 * 40_000_000 / 4096
    assert huge < 0.5 * small  # not all of them: the kernel gives what it has


@pytest.mark.skipif(not GIVES, reason="machine: no huge pages for anyone")
def test_who_asks_himself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = faults(tmp_path / "default", monkeypatch, "make_own", "-")
    refused = faults(tmp_path / "never", monkeypatch, "make_own", "never")
    assert given < 0.5 * refused


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("asked", "seen", "told", "mapped", "effective", "status"),
    [
        ("never", Seen(allowed=False), {}, "libc.so.6", "never", "applied"),
        ("never", Seen(allowed=True), {}, "libc.so.6", "allowed", "ignored"),
        ("never", Seen(), {}, "libc.so.6", None, "unverifiable"),
        ("madvise", Seen(True, wished=1), TOLD, "libc.so.6", "madvise", "applied"),
        ("madvise", Seen(True, wished=0), TOLD, "libc.so.6", "nobody has asked for any", "ignored"),
        ("madvise", Seen(True, wished=1), {}, "libc.so.6", "nobody has asked for any", "ignored"),
        ("madvise", Seen(False), TOLD, "libc.so.6", "never", "ignored"),
        ("madvise", Seen(True, wished=1), TOLD, "libjemalloc.so.2", "what libjemalloc.so.2 does", "ignored"),
    ],
)
def test_the_kernel_decides(
    asked: str, seen: Seen, told: dict[str, str], mapped: str, effective: str | None, status: str
) -> None:
    judged = huge_pages.judge(asked, seen, told, [Path("/lib") / mapped])
    assert (judged.effective, judged.status) == (effective, status)


def test_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("eigen", workload("mlp"), settings={NAME: "madvise"})
    (tmp_path / "enabled").write_text("always madvise [never]\n")
    for machine in ("enabled", "missing"):
        monkeypatch.setattr(huge_pages, "_MACHINE", tmp_path / machine)
        with pytest.raises(
            Unavailable, match=r"memory\.huge_pages=madvise: this machine gives no huge pages"
        ):
            validate_settings(case, resolve(case))
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(huge_pages, "_MACHINE", tmp_path / "enabled")
    monkeypatch.setattr("os.confstr", lambda _: "glibc 2.31")
    with pytest.raises(Unavailable, match=r"needs glibc 2\.35 or later, this machine has glibc 2\.31"):
        validate_settings(case, resolve(case))
