"""`tt.libraries()`: what a process has loaded, and every contradiction that can be planted, by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from interpreter import fake, installed, run

from timetrial.library_files import find

SEEN = """
for path in sys.argv[1:]: load(path)
found = tt.libraries()
print(json.dumps([found.to_dicts(), found.contradictions, repr(found), found._repr_html_()]))
"""
TWO_CPUS = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="machine: one CPU")


def seen(*paths: Path, **environment: str) -> tuple[dict[str, dict[str, Any]], list[str], str]:
    """File name -> what it says; the contradictions; the table."""
    found, contradictions, text, html = run(SEEN, *paths, environment=environment)
    assert "<pre" in html
    return {Path(one["path"]).name: one for one in found}, contradictions, text


def of(name: str) -> tuple[Path, str]:
    path = installed(name)
    return path, path.resolve().name


@pytest.mark.parametrize(
    ("name", "vendor", "threading"),
    [
        ("openblas-pthread", "OpenBLAS", "pthreads"),
        ("openblas-openmp", "OpenBLAS", "OpenMP"),
        ("openblas-serial", "OpenBLAS", "none"),
        ("blis-pthread", "BLIS", "pthreads"),
        ("blis-openmp", "BLIS", "OpenMP"),
        ("blis-serial", "BLIS", "none"),
        ("atlas", "ATLAS", ""),
        ("reference", "", ""),
    ],
)
def test_a_library_is_known(name: str, vendor: str, threading: str) -> None:
    path, file = of(name)
    found, _, text = seen(path)
    assert (found[file]["vendor"], found[file]["threading"]) == (vendor, threading)
    assert file in text
    known = vendor in ("OpenBLAS", "BLIS")
    assert bool(found[file]["kernel"]) == bool(found[file]["version"] and known) == known
    assert found[file]["integer_bits"] == (32 if known else None)
    assert (found[file]["threads"] is None) != known
    # What it cannot be told or know is said.
    assert bool(found[file]["limits"]) == (threading != "pthreads" and name != "blis-openmp")


def test_nothing_is_loaded_for_it() -> None:
    script = """
import timetrial.core
mapped = lambda: {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
from timetrial.in_process.loaded import libraries
before = mapped()
found = libraries()
print(json.dumps([sorted(mapped() - before), len(found)]))
"""
    new, found = run(script)
    assert new == []
    assert found > 0  # NumPy's


def test_onednn_and_its_openmp() -> None:
    path = find("onednn-pypi")
    found, _, _ = seen(path)
    assert found[path.name]["threading"] == "OpenMP"
    assert "primitives" in found[path.name]["limits"]
    assert any(one["kind"] == "openmp" for one in found.values())


def test_mkl_computes_by_the_branch_that_was_asked(tmp_path: Path) -> None:
    path = fake(tmp_path, "libfake.so", "MKL")
    assert seen(path)[0]["libfake.so"]["kernel"] == "AVX512"  # its own choice
    assert seen(path, MKL_CBWR="AVX2")[0]["libfake.so"]["kernel"] == "AVX2"


def test_two_openmp_runtimes(tmp_path: Path) -> None:
    one = [fake(tmp_path, "libgomp-1.so", "OPENMP")]
    assert seen(*one)[1] == []
    [words] = seen(*one, fake(tmp_path, "libgomp-2.so", "OPENMP"))[1]
    assert words.startswith("2 OpenMP runtimes are loaded, GNU ")
    assert "libgomp-1.so" in words
    assert "libgomp-2.so" in words


def test_openblas_on_openmp_is_deaf_to_its_own_variable() -> None:
    path, file = of("openblas-openmp")
    words = f"OpenBLAS ({file}) is built on OpenMP and does not read OPENBLAS_NUM_THREADS=1"
    assert words in seen(path, OPENBLAS_NUM_THREADS="1")[1]
    assert words not in seen(path, OMP_NUM_THREADS="1")[1]


def test_a_serial_build_that_was_asked_for_two() -> None:
    path, file = of("blis-serial")
    words = f"BLIS ({file}) was built for one thread, whatever BLIS_NUM_THREADS=2 says"
    assert words in seen(path, BLIS_NUM_THREADS="2")[1]
    assert words not in seen(path, BLIS_NUM_THREADS="1")[1]


def test_a_serial_build_that_answers_two(tmp_path: Path) -> None:
    [words] = seen(fake(tmp_path, "libfake.so", "PARALLEL=0"))[1]
    assert (
        words == "OpenBLAS (libfake.so) answers 2 threads (openblas_get_num_threads()) and was built for one"
    )


def test_a_core_type_that_fell_back() -> None:
    path, file = of("openblas-pthread")

    def of_it(core: str) -> list[str]:
        words = seen(path, OPENBLAS_CORETYPE=core)[1]
        return [one for one in words if one.startswith(f"OpenBLAS ({file})") and "CORETYPE" in one]

    [words] = of_it("Nonsense")
    assert "has the kernels of " in words
    assert "not those of OPENBLAS_CORETYPE=Nonsense: " in words
    assert of_it("Prescott") == []


@TWO_CPUS
def test_a_pool_that_was_sized_before_the_mask() -> None:
    path, file = of("openblas-pthread")
    script = """
load(sys.argv[1])
before = tt.libraries().contradictions
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(json.dumps([before, tt.libraries().contradictions]))
"""
    before, after = run(script, path)
    words = (
        f"OpenBLAS ({file}) has 2 threads (openblas_get_num_threads()), and this thread may use 1 processor"
    )
    assert words not in before
    assert words.replace("has 2", f"has {len(os.sched_getaffinity(0))}") in after


@TWO_CPUS
def test_a_mask_that_openmp_shrank() -> None:
    script = """
threading.Thread(target=threading.Event().wait, daemon=True).start()
load("libgomp.so.1")
print(json.dumps([list(os.sched_getaffinity(0)), tt.libraries().contradictions]))
sys.stdout.flush()
os._exit(0)
"""
    mask, words = run(script, environment={"OMP_PROC_BIND": "close", "OMP_PLACES": "threads"})
    assert len(mask) < len(os.sched_getaffinity(0)), "libgomp bound nothing here"
    assert any(one.startswith("OMP_PROC_BIND bound this thread to ") for one in words)
    assert not any("bound" in one for one in run(script)[1])
