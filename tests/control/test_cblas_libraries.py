"""`cblas` over every BLAS that is installed, and over files that are none: one clear line each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_cblas import fake_cblas
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.library_files import available, find, known_libraries
from timetrial.records.model import LaunchRecord, Setting

CPUS = len(os.sched_getaffinity(0))
BLAS = [name for name, library in known_libraries().items() if library.kind == "blas"]


def launch(folder: Path, library: str, purpose: str = "proof", **settings: str) -> LaunchRecord:
    return run_launch(
        make_plan(folder / "launch", "cblas", settings={"blas.library": library, **settings}, purpose=purpose)
    )


def setting(record: LaunchRecord, name: str) -> Setting:
    return next(one for one in record.settings if one.name == name)


@pytest.mark.effect("blas.library")
@pytest.mark.parametrize("name", BLAS)
@pytest.mark.parametrize("parallel", ["images", pytest.param("product", marks=pytest.mark.full)])
def test_every_library_computes_the_network(tmp_path: Path, name: str, parallel: str) -> None:
    if name not in available():
        pytest.skip(f"{name} is not installed: {known_libraries()[name].cure}")
    record = launch(tmp_path, name, parallel=parallel)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed", record.parity.reason
    opened = setting(record, "blas.library")
    assert (opened.asked, opened.status) == (name, "applied")
    assert Path(str(opened.effective)) == find(name).resolve()
    assert "dladdr" in opened.how_read
    assert setting(record, "parallel").effective == parallel
    assert record.facts["blas.kernel"]
    library = next(one for one in record.libraries if one.path == opened.effective)
    assert library.sha256 is not None
    # No second OpenMP runtime beside the one of everybody else.
    assert not any("libiomp" in one.path for one in record.libraries)


def test_the_default_is_named_in_the_record(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "cblas", settings={"threads": "1"}))
    opened = setting(record, "blas.library")
    assert (opened.asked, opened.effective) == (None, str(find("openblas-scipy").resolve()))
    assert opened.status == "applied"


def test_a_path_of_ones_own(tmp_path: Path) -> None:
    library = fake_cblas(tmp_path)
    record = launch(tmp_path, library)
    assert record.outcome == "ok", words(record)
    assert setting(record, "blas.library").status == "applied"
    assert library in [one.path for one in record.libraries]
    assert record.facts["blas.integers"] == "32 bits"


def test_integers_of_64_bits_are_seen(tmp_path: Path) -> None:
    record = launch(tmp_path, fake_cblas(tmp_path, "WIDE"))
    assert record.outcome == "ok", words(record)
    assert record.facts["blas.integers"] == "64 bits"
    assert record.parity is not None
    assert record.parity.status == "passed"


@pytest.mark.parametrize(
    ("macros", "outcome", "said"),
    [
        (["NO_SGEMM"], "unavailable", "is no CBLAS: it exports no cblas_sgemm"),
        (["NO_DGEMM"], "unavailable", "lacks the function cblas_dgemm"),
        (["NO_ISAMAX"], "unavailable", "lacks the function cblas_isamax"),
        (["ISAMAX=7"], "unavailable", "is no CBLAS that works: cblas_isamax({1, 2, 3}) answers 7"),
        (["OFF=1"], "unavailable", "multiplies wrong: cblas_sgemm"),
        (["CRASH"], "crash", "ended by SIGABRT during start, with blas.library = "),
    ],
)
def test_a_library_that_is_no_cblas(tmp_path: Path, macros: list[str], outcome: str, said: str) -> None:
    record = launch(tmp_path, fake_cblas(tmp_path, *macros))
    assert record.outcome == outcome, words(record)
    assert record.reason is not None
    assert said in record.reason
    assert "\n" not in record.reason
    assert str(tmp_path / "libfake.so") in record.reason


def test_the_c_library_is_no_cblas(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps").read_text().split()
    libc = next(word for word in maps if "/libc.so" in word or "/libc-" in word)
    record = launch(tmp_path, libc)
    assert record.outcome == "unavailable", words(record)
    assert "is no CBLAS" in (record.reason or "")


def test_files_that_are_no_libraries_are_refused_before_anything_starts(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    for word, said in ((str(text), "no ELF header"), (str(tmp_path / "no.so"), "there is no such file")):
        with pytest.raises(InputError, match=said):
            resolve(Case("cblas", workload("mlp"), settings={"blas.library": word}))
