"""affinity=compact, spread, each: resolved by the machine's topology, applied, and read of every thread."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import pinning, topology
from timetrial.control.manners import judge_affinity
from timetrial.control.threads import ThreadEvidence
from timetrial.control.topology import chosen_by, kind_of, places_of
from timetrial.core.observer import Observer
from timetrial.core.observer import Thread as SeenThread
from timetrial.errors import InputError, MeasurementError
from timetrial.launch import run_launch
from timetrial.records.model import Thread

# Two packages of two cores of two threads, numbered as Linux mostly does: the second threads come last.
PLACES = {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1), 4: (0, 0), 5: (0, 1), 6: (1, 0), 7: (1, 1)}
CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("word", "count", "cpus"),
    [
        ("compact", 1, {0}),
        ("compact", 2, {0, 4}),
        ("compact", 3, {0, 4, 1}),
        ("compact", 5, {0, 4, 1, 5, 2}),
        ("spread", 2, {0, 2}),
        ("spread", 4, {0, 1, 2, 3}),
        ("spread", 5, {0, 1, 2, 3, 4}),
        ("each", 2, {0, 2}),
        ("spread", 8, set(range(8))),
    ],
)
def test_words_mean_processors(word: str, count: int, cpus: set[int]) -> None:
    assert chosen_by(word, count, PLACES) == cpus


def test_only_what_is_allowed_is_taken() -> None:
    left = {cpu: PLACES[cpu] for cpu in (1, 4, 5, 7)}
    assert chosen_by("compact", 2, left) == {1, 5} or chosen_by("compact", 2, left) == {4, 1}
    assert chosen_by("spread", 2, left) == {4, 7}
    assert len(chosen_by("spread", 4, left)) == 4


def test_the_kernel_knows_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, (package, core) in PLACES.items():
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{core}\n")
    monkeypatch.setattr(topology, "_FOLDER", tmp_path)
    assert places_of(PLACES) == PLACES
    assert places_of([9]) == {9: (0, 9)}  # the kernel says nothing


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("topology/physical_package_id", "1"),
        ("cache/index2/size", "4096K"),
        ("cache/index4/size", "64M"),
        ("cpu_capacity", "512"),
        ("node1/cpulist", "0-1"),
    ],
)
def test_processors_that_differ_in_one_thing_are_of_two_kinds(
    file: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "_FOLDER", tmp_path)
    for cpu in range(3):
        files = {
            "topology/physical_package_id": "0", "topology/core_id": str(cpu), "cache/index2/size": "2048K",
            "cpu_capacity": "1024", **({file: text} if cpu == 2 else {}),
        }  # fmt: skip
        for name, content in files.items():
            (tmp_path / f"cpu{cpu}" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / f"cpu{cpu}" / name).write_text(f"{content}\n")
    assert kind_of(0) == kind_of(1) != kind_of(2)
    assert kind_of(7) != kind_of(8)  # of which the kernel says nothing


@pytest.mark.skipif(CORES < 2, reason="machine: one CPU")
@pytest.mark.parametrize("backend", ["eigen", "onednn"])
def test_each_thread_has_a_processor_of_its_own(tmp_path: Path, backend: str) -> None:
    settings = {"affinity": "each", "threads": "2"}
    record = run_launch(make_plan(tmp_path / "launch", backend, settings=settings))
    assert record.outcome == "ok", words(record)
    [found] = [one for one in record.settings if one.name == "affinity"]
    assert (found.asked, found.status) == ("each", "applied")
    single = [one.allowed_cpus for one in record.threads if one.allowed_cpus.isdecimal()]
    assert len(set(single)) == len(single) == 2


def test_a_word_is_a_mask(tmp_path: Path) -> None:
    settings = {"affinity": "compact", "threads": "1"}
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings=settings))
    assert record.outcome == "ok", words(record)
    [found] = [one for one in record.settings if one.name == "affinity"]
    expected = next(iter(chosen_by("compact", 1, places_of(os.sched_getaffinity(0)))))
    assert (found.asked, found.effective, found.status) == ("compact", str(expected), "applied")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("masks", "effective", "status"),
    [
        (["0", "2"], "0, 2", "applied"),
        (["0", "0"], "0, 0", "ignored"),  # they share one
        (["0+2", "0+2"], "0+2, 0+2", "ignored"),  # nobody was bound
        (["0", "1"], "0-1", "ignored"),  # past the mask
    ],
)
def test_one_each_is_what_the_kernel_says(masks: list[str], effective: str, status: str) -> None:
    steady = tuple(
        Thread(tid=tid, name="t", cpu_ns=10**9, allowed_cpus=mask.replace("+", ","))
        for tid, mask in enumerate(masks)
    )
    judged = judge_affinity("each", frozenset({0, 2}), ThreadEvidence(steady=steady, steady_wall_ns=10**9))
    assert (judged.effective, judged.status) == (effective, status)


@pytest.mark.skipif(CORES < 2, reason="machine: one CPU")
def test_the_busiest_are_bound_and_keep_their_places() -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    masks, ready, over = {}, threading.Barrier(4), threading.Event()

    def work() -> None:
        masks[threading.get_native_id()] = None
        ready.wait()
        over.wait()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for one in threads:
        one.start()
    ready.wait()
    idle, busy, busier = masks
    everywhere = f"{first},{second}"

    def seen(tid: int, cpu_ns: int, allowed: str, name: str = "t") -> SeenThread:
        return SeenThread(os.getpid(), tid, name, cpu_ns, 0, allowed, 0, 0, 0, 0)

    looks = [
        seen(idle, 1, everywhere),
        seen(busy, 50, str(first)),  # it has a place
        seen(busier, 90, everywhere),
        seen(os.getpid(), 99, everywhere, "helper"),
    ]
    pinning.pin(looks, ["helper"], frozenset({first, second}))
    assert os.sched_getaffinity(busier) == {second}
    assert len(os.sched_getaffinity(idle)) == CORES
    # Fewer threads than processors, as of a contender that computes in one though two were asked.
    pinning.pin(looks[:1], [], frozenset({first, second}))
    assert os.sched_getaffinity(idle) == {first}
    over.set()


@pytest.mark.skipif(CORES < 2, reason="machine: one CPU")
def test_what_moves_keeps_what_it_bound_itself_to() -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    code = f"""
import os, queue, sys, threading
os.sched_setaffinity(0, {{{first}}})
tids = queue.Queue()
def work(mask):
    if mask: os.sched_setaffinity(0, mask)
    tids.put(threading.get_native_id())
    threading.Event().wait()
for mask in None, {{{second}}}, {{{first}, {second}}}:
    threading.Thread(target=work, args=(mask,), daemon=True).start()
    print(tids.get(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        as_started, other, wide = (int(child.stdout.readline()) for _ in range(3))
        observer = Observer(child.pid)
        pinning.move(lambda: observer.read().threads, frozenset({first}), frozenset({second}))
        now = {tid: os.sched_getaffinity(tid) for tid in (child.pid, as_started, other, wide)}
        child.communicate("")
    assert now == {
        child.pid: {second},
        as_started: {second},
        other: {second},  # bound elsewhere
        wide: {first, second},  # left what it was given: manners.py tells of it
    }


def look(tid: int, mask: str) -> SeenThread:
    return SeenThread(9, tid, "t", 0, 0, mask, 0, 0, 0, 0)


def test_what_begins_while_others_move_goes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what goes on beginning more keeps nobody waiting."""
    bound: dict[int, frozenset[int]] = {}
    monkeypatch.setattr(os, "sched_setaffinity", bound.__setitem__)
    looks = iter([[look(1, "0"), look(2, "1")], [look(1, "4"), look(2, "1"), look(3, "0"), look(4, "")]])
    pinning.move(lambda: next(looks, []), frozenset({0}), frozenset({4}))
    assert bound == {1: {4}, 3: {4}}
    numbers = itertools.count(10)
    pinning.move(lambda: [look(next(numbers), "0")], frozenset({0}), frozenset({4}))
    assert set(bound) == {1, 3, *range(10, 10 + pinning.MOST_LOOKS)}


@pytest.mark.parametrize("number", [errno.ESRCH, errno.EPERM, errno.EBUSY])
def test_one_that_cannot_be_moved_stays(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuses(tid: int, cpus: frozenset[int]) -> None:
        asked.append(tid)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sched_setaffinity", refuses)
    pinning.move(lambda: [look(8, "0"), look(9, "0")], frozenset({0}), frozenset({1}))
    assert asked == [8, 9]


def test_processors_that_cannot_be_had_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(tid: int, cpus: frozenset[int]) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuses)
    with pytest.raises(MeasurementError, match="cannot move a contender to the processors 1: Invalid"):
        pinning.move(lambda: [look(9, "0")], frozenset({0}), frozenset({1}))


def test_bad_input() -> None:
    def check(**settings: str) -> None:
        case = Case("eigen", workload("mlp"), settings=settings)
        validate_settings(case, resolve(case))

    with pytest.raises(InputError, match="affinity=compact: threads says how many processors that is"):
        check(affinity="compact")
    with pytest.raises(
        InputError, match="expected cores as in '0', '0-1' or '0\\+2', or compact, spread, each"
    ):
        check(affinity="compakt", threads="1")
    with pytest.raises(InputError, match=f"threads={CORES + 1}: this process may use {CORES} processor"):
        check(affinity="spread", threads=str(CORES + 1))


def test_more_threads_than_processors_are_meant_where_both_are_named(tmp_path: Path) -> None:
    """One core with four threads: allowed by name, and said."""
    core = str(min(os.sched_getaffinity(0)))
    settings = {"affinity": core, "threads": "4"}
    case = Case("eigen", workload("mlp"), settings=settings)
    validate_settings(case, resolve(case))
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings=settings))
    assert record.outcome == "ok", words(record)
    [found] = [one for one in record.settings if one.name == "threads"]
    assert (found.asked, found.effective, found.status) == ("4", "1", "adjusted")
    assert f"those that work may use {core} only" in found.how_read
