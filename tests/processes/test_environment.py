"""The environment is made from scratch: a hostile caller's variables do not reach the contender."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launching import make_plan, words

from timetrial.launch import run_launch

PRINTER = """
import json
import os
import sys


class Adapter(object):
    tasks, devices, dtypes = ("train",), ("cpu",), ("f32",)
    optimizers, layers = ("sgd",), ("dense", "relu", "flatten", "softmax_cross_entropy")
    version, library = "1", "none"

    def load(self, settings):
        print("ENVIRONMENT=" + json.dumps(dict(os.environ)))
        print("PATHS=" + json.dumps(sys.path))
        import shadowed
        print("SHADOWED=" + shadowed.__file__)

    def read_settings(self):
        return {}

    def build(self, job, batch):
        raise MemoryError("enough seen")
"""

HOSTILE = {
    "LD_PRELOAD": "/no/such/library.so",
    "OMP_NUM_THREADS": "7",
    "OMP_WAIT_POLICY": "active",
    "OPENBLAS_NUM_THREADS": "7",
    "MKL_NUM_THREADS": "7",
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "KMP_AFFINITY": "compact",
    "PYTHONOPTIMIZE": "2",
    "PYTHONHASHSEED": "7",
}


def seen(stdout: str, name: str) -> str:
    return next(line for line in stdout.splitlines() if line.startswith(name + "=")).partition("=")[2]


def test_a_hostile_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "shadowed.py").write_text("")
    (theirs / "numpy.py").write_text("raise ImportError('a shadow of numpy was imported')")
    monkeypatch.setenv("PYTHONPATH", str(theirs))
    monkeypatch.syspath_prepend(str(theirs))
    adapter = tmp_path / "printer"
    adapter.mkdir()
    (adapter / "adapter.py").write_text(PRINTER)

    record = run_launch(make_plan(tmp_path / "launch", str(adapter), environment={"MY_OWN": "yes"}))
    assert record.reason == "MemoryError: enough seen (build)", words(record)
    environment = eval(seen(record.stdout, "ENVIRONMENT"))
    # LC_CTYPE is CPython's own, from its handling of the C locale.
    assert set(environment) - {"LC_CTYPE"} == {"PATH", "LANG", "HOME", "TMPDIR", "MY_OWN"}
    assert environment["LANG"] == "C.UTF-8"
    assert environment["HOME"] == str(tmp_path / "launch" / "home")
    assert environment["TMPDIR"] == str(tmp_path / "launch" / "tmp")
    assert record.environment == {name: environment[name] for name in record.environment}
    assert {*HOSTILE, "PYTHONPATH"} <= set(record.dropped_environment)
    # What only the caller's path has is found, behind everything that the interpreter has itself.
    assert seen(record.stdout, "SHADOWED") == str(theirs / "shadowed.py")
    assert eval(seen(record.stdout, "PATHS"))[0] != str(theirs)


def test_a_setting_brings_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    adapter = tmp_path / "printer"
    adapter.mkdir()
    (adapter / "adapter.py").write_text(PRINTER)
    (adapter / "shadowed.py").write_text("")
    (adapter / "environment.toml").write_text(
        '[[versions]]\nversion = "1"\n[versions.settings.threads]\nenvironment = ["OMP_NUM_THREADS"]\n'
    )
    record = run_launch(make_plan(tmp_path / "launch", str(adapter), settings={"threads": "1"}))
    assert record.environment["OMP_NUM_THREADS"] == "1", words(record)
    assert "OMP_NUM_THREADS" in record.dropped_environment


def test_a_hostile_caller_does_not_change_native_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings={"threads": "1"}))
    assert record.outcome == "ok", words(record)
    assert record.stderr == ""  # ld.so would complain about LD_PRELOAD
    assert os.environ["LD_PRELOAD"] == HOSTILE["LD_PRELOAD"]
