"""timetrial-exec: whatever happens, it says how the contender ended and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from supervised import state, supervised, wait_until

from timetrial.core import native

SLEEP = ["sleep", "1000"]

# Double fork and new session: no parent, no group and no session leads back to the contender.
ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        time.sleep(1000)
    os._exit(0)
os.wait()
if sys.argv[2] == "stay":
    time.sleep(1000)
"""


def escaped(file: Path) -> int:
    wait_until(file.exists, "the grandchild has written its id")
    return int(file.read_text())


@pytest.mark.parametrize(
    ("program", "end"), [(["true"], "exited 0"), (["sh", "-c", "exit 3"], "exited 3")], ids=["0", "3"]
)
def test_exit_code_is_reported(program: list[str], end: str) -> None:
    before = time.monotonic_ns()
    with supervised(program) as contender:
        started, *rest = contender.reports()
    word, pid, ns = started.split()
    assert (word, int(pid) > 0) == ("started", True)
    assert before < int(ns) < time.monotonic_ns()
    assert rest == [end, "gone"]
    assert contender.process.returncode == 0


@pytest.mark.attempt
def test_sigkill_of_the_contender_is_reported() -> None:
    with supervised(SLEEP) as contender:
        os.kill(contender.started(), signal.SIGKILL)
        assert contender.reports() == ["signaled 9", "gone"]


@pytest.mark.attempt
def test_orphan_is_dead_after_the_parent_has_gone(tmp_path: Path) -> None:
    with supervised([sys.executable, "-c", ESCAPE, str(tmp_path / "pid"), "stay"]) as contender:
        pid = contender.started()
        orphan = escaped(tmp_path / "pid")
        assert os.getsid(orphan) != os.getsid(pid)
        contender.leave()
        assert contender.reports() == ["signaled 9", "gone"]
        assert state(orphan) is None
        assert state(pid) is None


@pytest.mark.attempt
def test_orphan_is_dead_after_the_contender_has_ended(tmp_path: Path) -> None:
    with supervised([sys.executable, "-c", ESCAPE, str(tmp_path / "pid"), "end"]) as contender:
        contender.started()
        assert contender.reports() == ["exited 0", "gone"]
        assert state(escaped(tmp_path / "pid")) is None


@pytest.mark.attempt
def test_orphan_is_dead_when_the_parent_process_is_killed(tmp_path: Path) -> None:
    """The whole chain: a Python parent with a supervised contender gets SIGKILL."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from supervised import Supervised\n"
        f"contender = Supervised([sys.executable, '-c', {ESCAPE!r}, sys.argv[2], 'stay'])\n"
        "time.sleep(1000)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "pid")])
    orphan = escaped(tmp_path / "pid")
    parent.kill()
    parent.wait()
    wait_until(lambda: state(orphan) is None, "the orphan is gone")


@pytest.mark.attempt
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_to_the_supervisor_ends_everything(number: signal.Signals) -> None:
    with supervised(SLEEP) as contender:
        pid = contender.started()
        contender.process.send_signal(number)
        assert contender.reports() == ["signaled 9", "gone"]
        assert state(pid) is None


@pytest.mark.attempt
def test_kill_of_the_supervisor_takes_the_contender_along() -> None:
    with supervised(SLEEP) as contender:
        pid = contender.started()
        contender.process.kill()
        wait_until(lambda: state(pid) in (None, "Z"), "the contender is gone")


@pytest.mark.attempt
def test_kill_ends_a_group_that_ignores_every_other_signal() -> None:
    deaf = "trap '' INT TERM HUP; sleep 1000 & sleep 1000 & echo up; wait"
    read, write = os.pipe()
    with supervised(["sh", "-c", f"exec >/proc/self/fd/{write}; {deaf}"], keep=[write]) as contender:
        os.close(write)
        contender.started()
        assert os.read(read, 16) == b"up\n"
        contender.send("kill")
        assert contender.reports() == ["signaled 9", "gone"]
        assert os.read(read, 16) == b"", "a process that holds the pipe is left"
    os.close(read)


def test_stop_and_continue_reach_the_group_only() -> None:
    with supervised(SLEEP) as contender:
        pid = contender.started()
        contender.send("stop")
        wait_until(lambda: state(pid) == "T", "the contender is stopped")
        wait_until(lambda: state(contender.process.pid) == "S", "the supervisor sleeps, and is not stopped")
        contender.send("continue")
        wait_until(lambda: state(pid) == "S", "the contender goes on")
        contender.send("stop")
        contender.send("kill")
        assert contender.reports() == ["signaled 9", "gone"]


@pytest.mark.attempt
def test_missing_program_is_said_in_words() -> None:
    with supervised(["/nowhere/timetrial-child"]) as contender:
        assert contender.reports() == [
            "error cannot start '/nowhere/timetrial-child': No such file or directory",
            "gone",
        ]
    assert contender.process.returncode == 1


@pytest.mark.attempt
def test_missing_interpreter_is_told_from_a_missing_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    with supervised([str(script)]) as contender:
        assert "the interpreter or loader it names is not" in contender.reports()[0]


@pytest.mark.attempt
def test_cpu_that_is_not_allowed_is_an_error() -> None:
    with supervised(["true"], ["--affinity", "0+4000"]) as contender:
        error, gone = contender.reports()
    assert error.startswith("error affinity 0+4000: CPU 4000 is not among the CPUs allowed here (")
    assert gone == "gone"


@pytest.mark.attempt
@pytest.mark.parametrize("words", ["0-x", "", "1-0", "0,,1", "-1", "99999"])
def test_nonsense_affinity_is_an_error(words: str) -> None:
    with supervised(["true"], ["--affinity", words]) as contender:
        reports = contender.reports()
    assert reports[0].startswith(f"error '{words}' is not a set of CPUs: ")
    assert contender.process.returncode == 2


@pytest.mark.attempt
@pytest.mark.parametrize(
    "options",
    [
        ["--nice", "20"],
        ["--huge-pages", "some"],
        ["--memory", "1GB"],
        ["--processes", "0"],
        ["--open-files", "0"],
        ["--watch-memory", "1GB"],
        ["--address-space", "-1"],
        ["--afinity", "0"],
        ["--nice"],
    ],
)
def test_bad_options_are_errors(options: list[str]) -> None:
    with supervised(["true"], options) as contender:
        assert contender.reports()[0].startswith("error ")
    assert contender.process.returncode == 2


def test_affinity_nice_and_huge_pages_are_in_force() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = (
        "import os; huge = 'THP_enabled:\\t1' in open('/proc/self/status').read(); "
        "os.write(%d, repr((sorted(os.sched_getaffinity(0)), os.nice(0), huge)).encode())"
    )
    read, write = os.pipe()
    options = ["--affinity", str(cpu), "--nice", "5", "--huge-pages", "never"]
    with supervised([sys.executable, "-c", code % write], options, keep=[write]) as contender:
        contender.started()
        assert contender.reports() == ["exited 0", "gone"]
    os.close(write)
    assert os.read(read, 100).decode() == repr(([cpu], 5, False))
    os.close(read)


@pytest.mark.attempt
@pytest.mark.parametrize(("mebibytes", "code"), [(64, 0), (512, 7)])
def test_memory_limit_refuses_what_is_beyond(mebibytes: int, code: int) -> None:
    program = f"try: room = bytearray({mebibytes} << 20)\nexcept MemoryError: raise SystemExit(7)"
    with supervised([sys.executable, "-c", program], ["--memory", str(256 << 20)]) as contender:
        contender.started()
        limits, *rest = contender.reports()
    assert limits.startswith(f"limits data {256 << 20} ")
    assert rest == [f"exited {code}", "gone"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root is exempt from the limit")
def test_process_limit_is_refused_for_root() -> None:
    with supervised(["true"], ["--processes", "10"]) as contender:
        assert "no effect for root" in contender.reports()[0]


@pytest.mark.attempt
@pytest.mark.skipif(os.getuid() == 0, reason="root is exempt from the limit")
def test_process_limit_is_in_force() -> None:
    code = "import os\nfor i in range(50):\n  if os.fork() == 0: __import__('time').sleep(1000)"
    with supervised([sys.executable, "-c", code], ["--processes", "10"]) as contender:
        contender.started()
        assert contender.reports()[1:] == ["exited 1", "gone"]


def test_contender_sees_neither_control_nor_status() -> None:
    read, write = os.pipe()
    code = "import os; os.write(%d, repr(sorted(map(int, os.listdir('/proc/self/fd')))).encode())"
    with supervised([sys.executable, "-c", code % write], keep=[write]) as contender:
        contender.started()
        assert contender.reports() == ["exited 0", "gone"]
    os.close(write)
    # Python's own listing adds one descriptor, the next free one.
    assert os.read(read, 100).decode() == repr(sorted({0, 1, 2, 3, write}))
    os.close(read)


def test_pipe_of_the_contender_ends_with_it() -> None:
    """The supervisor holds no copy: the parent sees the end of the events at once."""
    read, write = os.pipe()
    with supervised(["sh", "-c", "exit 0"], keep=[write]) as contender:
        os.close(write)
        assert os.read(read, 1) == b""
        contender.reports()
    os.close(read)


@pytest.mark.attempt
def test_unknown_control_line_is_reported_and_survived() -> None:
    with supervised(SLEEP) as contender:
        contender.started()
        contender.send("halt")
        assert contender.report() == "error unknown control line 'halt'. Known: stop, continue, kill"
        contender.send("kill")
        assert contender.reports() == ["signaled 9", "gone"]


def test_it_sleeps() -> None:
    with supervised(SLEEP) as contender:
        contender.started()
        schedstat = Path(f"/proc/{contender.process.pid}/schedstat")
        # Its report is out before it is back in poll(), on a busy machine long before.
        for _ in range(100):
            before = schedstat.read_text().split()
            time.sleep(0.3)
            if schedstat.read_text().split() == before:
                return
        pytest.fail("the supervisor runs again and again while nothing happens")


def test_version() -> None:
    run = subprocess.run([native.exec_path(), "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.count(".") == 2
