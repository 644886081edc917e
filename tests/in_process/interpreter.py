"""A fresh interpreter that loads libraries: in this one they would stay for every test behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from timetrial.library_files import available, known_libraries

LOAD = """
import ctypes, json, os, sys, threading, warnings
import timetrial as tt
load = lambda path: ctypes.CDLL(path)
"""

# An OpenMP runtime, an MKL, or an OpenBLAS, of a few lines. DEAF: it keeps nothing of what it is told.
FAKE = """
static int threads = 2;
#ifdef DEAF
#define KEEP(n) (void)(n)
#else
#define KEEP(n) threads = n
#endif
#ifdef OPENMP
int omp_get_max_threads(void) { return threads; }
void omp_set_num_threads(int n) { KEEP(n); }
void GOMP_parallel(void) {}
#elif defined(MKL)
#include <stdlib.h>
#include <string.h>
int MKL_Get_Max_Threads(void) { return threads; }
void MKL_Set_Num_Threads(int n) { KEEP(n); }
int MKL_CBWR_Get(int what) { return what == 1 && getenv("MKL_CBWR") ? 10 : 1; }
int MKL_CBWR_Get_Auto_Branch(void) { return 12; }
void MKL_Get_Version_String(char* text, int size) { strncpy(text, "Math Kernel Library 0.0", size); }
#else
const char* openblas_get_config(void) { return "OpenBLAS 0.0"; }
int openblas_get_parallel(void) { return PARALLEL; }
int openblas_get_num_threads(void) { return threads; }
void openblas_set_num_threads(int n) { KEEP(n); }
#endif
"""


def run(script: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Any:
    """What `script` prints as JSON, with tt, ctypes and load() at hand."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OMP", "OPENBLAS", "GOMP"))
    }
    done = subprocess.run(
        [sys.executable, "-c", LOAD + script, *map(str, arguments)],
        env={**kept, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def installed(name: str) -> Path:
    """The file of a library, or a skipped test."""
    found = available("blas").get(name)
    if found is None:
        pytest.skip(f"machine: {name} is not installed: {known_libraries()[name].cure}")
    return found


def fake(folder: Path, name: str, *macros: str) -> Path:
    """A library of a few lines, compiled."""
    source, library = folder / f"{name}.c", folder / name
    source.write_text(FAKE, encoding="utf-8")
    flags = [f"-D{macro}" for macro in macros]
    subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", library, source], check=True)
    return library
