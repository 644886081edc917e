"""flush_to_zero: asked, applied in every thread that computes, and read by the kernel."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from launching import make_plan, words

from timetrial.cases.case import Case, Workload
from timetrial.contenders import validate_settings
from timetrial.contenders.registry import resolve
from timetrial.control.float_mode import judge_float_mode
from timetrial.core import native
from timetrial.core.observer import float_mode_of
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.processes.events import Reading
from timetrial.records.model import Setting, Thread

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")
CHILD = f"""
import importlib.machinery, importlib.util, sys, threading
path = {str(native.runtime_dir())!r} + "/_timetrial_runtime.abi3.so"
loader = importlib.machinery.ExtensionFileLoader("_timetrial_runtime", path)
spec = importlib.util.spec_from_loader("_timetrial_runtime", loader, origin=path)
runtime = importlib.util.module_from_spec(spec)
loader.exec_module(runtime)
early = threading.Event()
def wait(numbers):
    numbers.append(threading.get_native_id())
    early.wait()
numbers = []
threading.Thread(target=wait, args=(numbers,), daemon=True).start()
runtime.set_float_mode(int(sys.argv[1]))
threading.Thread(target=wait, args=(numbers,), daemon=True).start()
while len(numbers) < 2:
    pass
tiny = float.fromhex("0x1p-1060")
print(*numbers, runtime.float_mode(), tiny * 0.5 > 0, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("mode", "word"), [(0, "off"), (1, "results"), (2, "operands"), (3, "on")])
def test_the_kernel_knows_each_thread(mode: int, word: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(mode)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        first, second, said, is_computed = child.stdout.readline().split()
        assert int(said) == mode
        assert (is_computed == "True") is (mode == 0)  # what it is about: the arithmetic itself
        assert float_mode_of(child.pid) == word
        assert float_mode_of(int(first)) == "off"  # it was there before
        assert float_mode_of(int(second)) == word  # inherited
        child.communicate("")
        with pytest.raises(ProcessLookupError):
            float_mode_of(child.pid)


def test_a_thread_of_ours_cannot_be_traced_by_us() -> None:
    with pytest.raises(PermissionError):
        float_mode_of(threading.get_native_id())


def setting(record_settings: list[Setting]) -> Setting:
    return next(one for one in record_settings if one.name == "flush_to_zero")


@pytest.mark.effect("flush_to_zero")
@pytest.mark.parametrize("backend", ["eigen", "onednn", "cblas", PLANTED])
@pytest.mark.parametrize("word", ["on", "off"])
def test_asked_is_in_force(tmp_path: Path, backend: str, word: str) -> None:
    settings = {"flush_to_zero": word, "threads": "1"}
    record = run_launch(
        make_plan(tmp_path / "launch", backend, settings=settings, environment={"OPENBLAS_NUM_THREADS": "1"})
    )
    assert record.outcome == "ok", words(record)
    found = setting(record.settings)
    assert (found.asked, found.effective, found.status) == (word, word, "applied"), found
    assert "ptrace" in found.how_read
    assert {one.flush_to_zero for one in record.threads if one.cpu_ns > 1_000_000} == {word}


def test_it_is_read_where_nobody_asked(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "eigen"))
    found = setting(record.settings)
    assert (found.asked, found.effective, found.status) == (None, "off", "applied")


def test_who_changes_it_behind_our_back_is_caught(tmp_path: Path) -> None:
    settings = {"flush_to_zero": "off", "threads": "1", "planted.behavior": "flush"}
    record = run_launch(
        make_plan(tmp_path / "launch", PLANTED, settings=settings, environment={"OPENBLAS_NUM_THREADS": "1"})
    )
    assert record.outcome == "mismatch"
    assert record.reason == "flush_to_zero asked off, in force on"


def thread(tid: int, cpu_ns: int, mode: str | None) -> Thread:
    return Thread.model_validate(
        {"tid": tid, "name": "", "cpu_ns": cpu_ns, "allowed_cpus": "0", "flush_to_zero": mode}
    )


def test_what_counts_are_threads_that_compute() -> None:
    said = Reading(effective="on", how_read="its word")
    pool = [thread(1, 1000, "on"), thread(2, 900, "off"), thread(3, 0, "off")]
    found = judge_float_mode("on", said, pool)
    assert (found.status, found.effective) == ("ignored", "off in 1 threads, on in 1 threads")
    assert judge_float_mode("on", said, [pool[0], pool[2]]).status == "applied"
    unread = judge_float_mode("on", said, [thread(1, 1000, None)])
    assert (unread.status, unread.how_read) == ("applied", "its word")
    assert judge_float_mode("off", said, []).status == "ignored"
    assert judge_float_mode("off", Reading(), []).status == "unverifiable"


@pytest.mark.parametrize("word", ["true", "yes", "1", ""])
def test_another_word_is_bad_input(word: str) -> None:
    case = Case("eigen", Workload("mlp", "synthetic", 16, {"name": "sgd"}), settings={"flush_to_zero": word})
    with pytest.raises(InputError, match=f"flush_to_zero='{word}': expected on or off"):
        validate_settings(case, resolve(case))
