"""What a contender may do behind our back with threads, processes, processors and priority, in real launches.

Nothing here depends on how busy the machine is: threads are compared with each other, never with a clock.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from launching import MS, SHORT, words

from timetrial.control_groups import cpu_groups
from timetrial.observing.disturbances import causes_of, in_words
from timetrial.records.model import LaunchRecord, Setting

pytestmark = pytest.mark.attempt

Launch = Callable[..., LaunchRecord]
STEPS = 60
LOWEST_NICE = 19
BURN = """
import hashlib, os, queue, threading, time
DATA = bytes(65536)
def burn(seconds):  # of CPU time; other threads of Python may run meanwhile
    end = time.thread_time() + seconds
    while time.thread_time() < end: hashlib.sha256(DATA)
"""


@pytest.fixture
def steps(launch: Launch) -> Launch:
    """steps(text, threads="1") takes STEPS steps of make(), however long they take."""
    patient = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS)

    def run(text: str, count: int = STEPS, **settings: str) -> LaunchRecord:
        return launch(BURN + text, measured=patient, max_steps=count, **settings)

    return run


def setting(record: LaunchRecord, name: str) -> Setting | None:
    return next((one for one in record.settings if one.name == name), None)


def threads_of(record: LaunchRecord) -> Setting:
    found = setting(record, "threads")
    assert found is not None, words(record)
    return found


def test_fresh_threads_in_every_step(steps: Launch) -> None:
    record = steps(
        """
def work(): hashlib.pbkdf2_hmac("sha256", b"", b"", 10_000)  # other threads run meanwhile
def make():
    alive = []
    def step():  # never waits for them: it wants a CPU all the time, and so do they
        alive[:] = [one for one in alive if one.is_alive()]
        while len(alive) < 3:
            alive.append(threading.Thread(target=work))
            alive[-1].start()
        work()
    return step
""",
        threads="1",
    )
    assert record.outcome == "mismatch", words(record)
    assert (record.reason or "").startswith("threads asked 1, working")
    assert "by threads or processes that have ended" in threads_of(record).how_read


def test_a_process_that_nobody_sees_as_a_child(steps: Launch) -> None:
    """It forks twice and leads a session of its own."""
    record = steps(
        """
def make():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: burn(1)
        os._exit(0)
    os.wait()
    return lambda: burn(0.002)
""",
        threads="1",
    )
    assert record.outcome == "mismatch", words(record)
    assert str(record.reason).partition(":")[0] == "threads asked 1, working 2"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_a_pool_of_two_of_which_one_works(steps: Launch) -> None:
    record = steps(
        """
def make():
    work, done = [queue.Queue(), queue.Queue()], queue.Queue()
    def serve(mine):
        while True:
            burn(mine.get())
            done.put(1)
    for one in work: threading.Thread(target=serve, args=(one,), daemon=True).start()
    def step():
        for mine, share in zip(work, (1.0, 0.012)): mine.put(0.004 * share)
        done.get(); done.get()
    return step
""",
        threads="2",
    )
    assert record.outcome == "ok", words(record)
    assert (threads_of(record).status, threads_of(record).effective) == ("adjusted", "1"), threads_of(record)


CHANGES = """
def make():
    steps = iter(range(1000))
    def step():
        if next(steps) == 30: {change}
        burn(0.002)
    return step
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_affinity_changed_after_it_was_read_back(steps: Launch) -> None:
    low, high = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    change = f"os.sched_setaffinity(0, {{{low}, {high}}})"
    record = steps(CHANGES.format(change=change), threads="1", affinity=str(low))
    assert record.outcome == "mismatch", words(record)
    assert record.reason == f"affinity asked {low}, in force {setting(record, 'affinity').effective}"  # type: ignore[union-attr]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_affinity_that_nobody_asked_to_change(steps: Launch) -> None:
    change = f"os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    record = steps(CHANGES.format(change=change), threads="1")
    assert record.outcome == "ok", words(record)
    found = setting(record, "affinity")
    assert found is not None
    assert found.status == "adjusted"
    assert "changed while steady" in found.how_read


@pytest.mark.parametrize(("change", "status"), [("os.nice(3)", "adjusted"), ("os.nice(-3)", "ignored")])
def test_priority_changed_after_the_start(steps: Launch, change: str, status: str) -> None:
    if status == "ignored" and os.geteuid() != 0:
        pytest.skip("only root may take a higher priority")
    if status == "adjusted" and os.getpriority(os.PRIO_PROCESS, 0) > LOWEST_NICE - 3:
        pytest.skip("machine: these tests run at the lowest priority themselves")
    record = steps(CHANGES.format(change=change), threads="1")
    found = setting(record, "priority")
    assert found is not None, words(record)
    assert found.status == status
    assert record.outcome == ("mismatch" if status == "ignored" else "ok")


def test_an_honest_step_leaves_no_trace_of_all_this(steps: Launch) -> None:
    record = steps(CHANGES.format(change="pass"), threads="1")
    assert record.outcome == "ok", words(record)
    assert {one.name for one in record.settings if one.status != "applied"} == set()
    assert {"affinity", "priority"} & {one.name for one in record.settings} == set()


# Neighbors -------------------------------------------------------------------------------------------

# It ends by itself after some seconds of CPU time, should nobody end it.
HOG = """
import ctypes, resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
ctypes.CDLL(None).prctl(15, b"tt-hog", 0, 0, 0)
print(flush=True)
while True: pass
"""


@contextmanager
def hog() -> Iterator[None]:
    """A program called tt-hog that wants one CPU, as urgently as it can have it."""
    with subprocess.Popen([sys.executable, "-c", HOG], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


@pytest.fixture
def small_quota() -> Iterator[Path]:
    """A control group that may use a hundredth of a CPU; nobody is in it."""
    top = cpu_groups()[-1:]
    if not top:
        pytest.skip("no control group shares out CPU time here")
    group = top[0] / f"timetrial-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text("1000 100000")
        elif (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_quota_us").write_text("1000")
        else:
            pytest.skip("the group has no CPU controller")
        yield group
    finally:
        group.rmdir()


def test_a_quota_is_named(steps: Launch, small_quota: Path) -> None:
    """Less than anybody gets on a machine that is merely busy."""
    record = steps(
        f"""
def make():
    open("{small_quota}/cgroup.procs", "w").write(str(os.getpid()))
    return lambda: burn(0.002)
""",
        count=8,
        threads="2",
    )
    assert "a quota allows 0.01 CPUs" in threads_of(record).how_read or record.outcome == "mismatch"
    assert "throttled by a quota for" in in_words([causes_of(record)]), record.witnesses


def test_a_hog_of_our_own_is_not_another_program(steps: Launch) -> None:
    """What we start ourselves is ours: a rival in a race is a child of this process, too."""
    with hog():
        record = steps(CHANGES.format(change="pass"), threads="1")
    assert record.outcome == "ok", words(record)
    assert "tt-hog" not in record.others


def test_a_hog_of_somebody_else_is_named(steps: Launch, tmp_path: Path) -> None:
    """It is started by a process that ends, so that it is nobody's child here. On a busy machine others use
    the CPUs as well; how much each gets is the scheduler's affair, but somebody is named in any case."""
    script = tmp_path / "hog.py"
    script.write_text(HOG)
    starter = (
        "import subprocess, sys\n"
        f"hog = subprocess.Popen([sys.executable, {str(script)!r}], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL, start_new_session=True)\nprint(hog.pid)\n"
    )
    started = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True)
    pid = int(started.stdout)
    try:
        while Path(f"/proc/{pid}/comm").read_text().strip() != "tt-hog":
            time.sleep(0.01)
        record = steps(CHANGES.format(change="pass"), threads="1")
    finally:
        os.kill(pid, 9)
    assert record.outcome == "ok", words(record)
    causes = causes_of(record)
    assert causes.others_cpus > 0, record.witnesses
    assert causes.programs, record.others
