"""What a contender leaves tells how it ended; what says nothing of it tells nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from timetrial.caps.caps import Caps
from timetrial.control_groups import Kills
from timetrial.core.observer import Observer, Thread
from timetrial.endings.causes import reached, speaks_of_memory
from timetrial.endings.last_words import stack_in, told
from timetrial.endings.stuck import STACKS_SIGNAL, ask_for_stacks, stuck_threads, words_of
from timetrial.processes.outcome import from_exit, from_failed_event, from_signal, from_watchdog
from timetrial.records.model import Phase

FREE = Caps()
MEMORY = Caps(memory_bytes=64 << 20, memory_by="data")
FILES = Caps(open_files=16)
RUNTIME = Path(__file__).parents[2] / "python/timetrial/runtime"


@pytest.mark.parametrize(
    ("words", "is_it"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("libx.so: failed to map segment from shared object", True),
        ("OpenBLAS error: Memory allocation still failed after 10 retries, giving up.", True),
        ("numpy.core._exceptions.MemoryError: Unable to allocate 1 GiB", True),
        ("ValueError: shapes (2,3) and (4,5) not aligned", False),
        ("", False),
    ],
)
def test_words_of_memory(words: str, is_it: bool) -> None:
    assert speaks_of_memory(words) is is_it
    assert (reached(words, MEMORY) is not None) is is_it
    assert not reached(words, FREE)  # there is nothing to reach


def test_the_line_that_says_it() -> None:
    text = "first: out of memory\n  then: Cannot allocate memory\nTraceback\n"
    assert reached(text, MEMORY) == "then: Cannot allocate memory"


def test_words_of_other_caps() -> None:
    assert reached("OSError: [Errno 24] Too many open files: 'x'", FILES)
    assert not reached("OSError: [Errno 24] Too many open files: 'x'", MEMORY)
    assert reached("RuntimeError: can't start new thread", Caps(processes=3))
    assert reached("libgomp: Thread creation failed: Resource temporarily unavailable", MEMORY)
    assert not reached("libgomp: Thread creation failed: Resource temporarily unavailable", FILES)


def test_what_the_contender_says() -> None:
    capped = from_failed_event("oom", "run", "MemoryError", MEMORY)
    assert (capped.outcome, capped.command) == ("capped", "run")
    assert capped.ending is not None
    assert capped.ending.cause == "refused"
    assert "MemoryError (run): memory.cap=67108864 (RLIMIT_DATA) was reached" in capped.reason
    oom = from_failed_event("oom", "run", "MemoryError", FREE)
    assert (oom.outcome, oom.ending and oom.ending.cause) == ("oom", "refused")
    other = from_failed_event("crash", "run", "ValueError: no", MEMORY)
    assert (other.outcome, other.ending and other.ending.cause) == ("crash", None)
    files = from_failed_event("crash", "load", "OSError: Too many open files", FILES)
    assert (files.outcome, files.ending and files.ending.cause) == ("capped", None)


def test_how_it_exits() -> None:
    assert from_exit(127, "start", MEMORY, "x: cannot allocate memory\n").outcome == "capped"
    plain = from_exit(3, "start", FREE, "x: cannot allocate memory\n")
    assert (plain.outcome, plain.ending and plain.ending.exit_code) == ("crash", 3)
    perhaps = from_exit(3, "start", MEMORY, "good bye")
    assert perhaps.outcome == "crash"
    assert "was set: that may be the cause; it may be less than its program needs to start" in perhaps.reason


@pytest.mark.parametrize(
    ("number", "kills", "outcome", "cause"),
    [
        (signal.SIGKILL, Kills(machine=1), "oom", "kernel"),
        (signal.SIGKILL, Kills(machine=1, group=1), "oom", "cgroup"),
        (signal.SIGKILL, Kills(), "crash", None),
        (signal.SIGSEGV, Kills(machine=1), "crash", None),  # it killed somebody else
    ],
)
def test_who_killed_it(number: int, kills: Kills, outcome: str, cause: str | None) -> None:
    failure = from_signal(number, "a segment", FREE, "", kills)
    assert (failure.outcome, failure.ending and failure.ending.cause) == (outcome, cause)
    assert failure.ending is not None
    assert failure.ending.signal == signal.Signals(number).name


def test_its_own_group_killed_it(tmp_path: Path) -> None:
    from timetrial.caps.groups import Group

    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    (tmp_path / "memory.peak").write_text("67108864\n")
    caps = Caps(64 << 20, "cgroup", groups=(Group(tmp_path, {"memory": 64 << 20}),))
    capped = from_signal(signal.SIGKILL, "start", caps, "", Kills(machine=1))
    assert capped.outcome == "capped"
    assert capped.ending is not None
    assert (capped.ending.cause, capped.ending.held_bytes) == ("cgroup", 64 << 20)
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert from_signal(signal.SIGKILL, "start", caps, "", Kills()).outcome == "crash"


def test_the_watchdog_ended_it() -> None:
    caps = Caps(64 << 20, "watchdog")
    failure = from_watchdog(70 << 20, "start", caps)
    assert failure.outcome == "capped"
    assert failure.ending is not None
    assert (failure.ending.cause, failure.ending.held_bytes) == ("watchdog", 70 << 20)


# Last words ----------------------------------------------------------------------------------------------

PYTHON = """warning: nothing
Thread 0x00007f01 (most recent call first):
  File "old.py", line 1 in wait
one more word
Fatal Python error: Segmentation fault

Thread 0x00007f02 (most recent call first):
  File "a.py", line 1 in wait

Current thread 0x00007f03 (most recent call first):
  File "b.py", line 2 in step
"""


def test_a_stack_is_found() -> None:
    assert stack_in(PYTHON) == [line for line in PYTHON.splitlines()[4:] if line]
    assert stack_in("a\nb") == []
    native = "x\ntimetrial-child: stack at signal 6:\n/lib/x.so(+0x12)[0x12]\n"
    assert stack_in(native) == native.splitlines()[1:]


def test_how_far_it_came() -> None:
    exec_ = [Phase(name="exec", ns=1)]
    assert told(None, [], 0, [], "").boundary == "none"
    assert told(None, exec_, 0, [], "").boundary == "exec"
    assert told(None, exec_, 7, [], "").boundary == "step 7"
    early = from_failed_event("oom", "build", "no more", FREE).ending
    assert told(early, exec_, 0, [], "").boundary == "import"
    assert told(early, exec_, 7, [], "").boundary == "step 7"
    assert told(None, [], 0, [], "\n".join(map(str, range(40)))).last_lines == list(map(str, range(28, 40)))


# Where it stands -----------------------------------------------------------------------------------------


def test_a_thread_that_waits_is_shown_where(tmp_path: Path) -> None:
    files = {
        "stat": "8 (a) b) S 1 8 8",
        "wchan": "futex_wait_queue",
        "syscall": "202 0x7f 0x80 0x0",
        "stack": "[<0>] futex_wait_queue+0x60/0x90\n[<0>] __x64_sys_futex+0x12/0x20\n",
    }
    folder = tmp_path / "proc/7/task/8"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    threads = [Thread(7, tid, "worker", 0, 0, "0", 0, 0, 0, 0) for tid in (8, 9)]
    (one,) = stuck_threads(threads, tmp_path)
    assert (one.tid, one.state, one.waits_in, one.name) == (8, "S", "futex_wait_queue", "worker")
    assert one.kernel_stack == ["futex_wait_queue", "__x64_sys_futex"]
    assert one.system_call == ("futex" if os.uname().machine == "x86_64" else "system call 202")
    assert words_of([one, one]).startswith("2 threads wait in ")
    (folder / "syscall").write_text("running")
    (folder / "wchan").write_text("0")
    (folder / "stack").unlink()
    (bare,) = stuck_threads(threads, tmp_path)
    assert (bare.system_call, bare.waits_in, bare.kernel_stack) == (None, None, [])


def test_a_real_thread_is_seen() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                pass
            (one,) = stuck_threads(Observer(process.pid).read().threads)
        finally:
            process.kill()
    assert (one.tid, one.name) == (process.pid, "sleep")


def test_python_says_where_it_stands(tmp_path: Path) -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(RUNTIME)!r}); import stacks; stacks.tell()\n"
        "def waiting_for_nothing():\n    print('ready', flush=True)\n    time.sleep(1000)\n"
        "waiting_for_nothing()\n"
    )
    stderr = tmp_path / "stderr.txt"
    with (
        open(stderr, "w") as file,
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=file) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert ask_for_stacks(process.pid, stderr)
            assert process.poll() is None  # it lives on
        finally:
            process.kill()
    assert any("in waiting_for_nothing" in line for line in stack_in(stderr.read_text()))


def test_whoever_does_not_answer_is_not_asked(tmp_path: Path) -> None:
    """The signal would end it."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            began = time.monotonic()
            assert not ask_for_stacks(process.pid, tmp_path / "none")
            assert time.monotonic() - began < 2.0 or process.poll() is None
            assert process.poll() is None
        finally:
            process.kill()


def test_both_sides_mean_the_same_signal() -> None:
    assert f"signal.SIGRTMAX - {signal.SIGRTMAX - STACKS_SIGNAL}" in (RUNTIME / "stacks.py").read_text()
