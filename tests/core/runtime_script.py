"""Run by test_runtime_module.py in every CPython found: python runtime_script.py FOLDER_OF_THE_MODULE.

Only syntax and library of Python 3.6.
"""

# ruff: noqa: PT017, PT018  (its asserts are its output, pytest is not here)

import array
import errno
import math
import os
import struct
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import _timetrial_runtime as runtime

PAGE = 4096


def address(values):
    return values.buffer_info()[0]


def read_window(fd, window, capacity):
    start = PAGE + window * 16 * capacity
    stamps = struct.unpack(f"<{capacity}Q", os.pread(fd, 8 * capacity, start))
    losses = struct.unpack(f"<{capacity}d", os.pread(fd, 8 * capacity, start + 8 * capacity))
    return list(stamps[: stamps.index(0)] if 0 in stamps else stamps), list(losses)


def raises(kind, words, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert words in str(error), f"{words!r} is not in {str(error)!r}"
        return error
    raise AssertionError(f"no {kind.__name__} with {words!r}")


def check_stamps(fd):
    recorder = runtime.Recorder(fd, 16)
    raises(OSError, "no window is open", recorder.stamp)
    recorder.begin(0, 3)
    raises(OSError, "open already", recorder.begin, 0, 3)
    before = runtime.now_ns()
    recorder.stamp(0)
    recorder.stamp()
    recorder.stamp(200)
    raises(OSError, "full", recorder.stamp)
    raises(ValueError, "boundary", recorder.stamp, 256)
    raises(TypeError, "", recorder.stamp, "x")
    raises(TypeError, "one boundary", recorder.stamp, 1, 2)
    after = runtime.now_ns()
    written, mapped = recorder.end()
    assert written == 3 and mapped == 8192, (written, mapped)
    raises(OSError, "no window is open", recorder.stamp)
    stamps, _ = read_window(fd, 0, 16)
    assert [stamp & 255 for stamp in stamps] == [0, 1, 200], stamps
    times = [before] + [stamp >> 8 for stamp in stamps] + [after]
    assert times == sorted(times), times
    raises(ValueError, "entries", recorder.begin, 0, 0)
    raises(OSError, "capacity", recorder.begin, 0, 17)


def check_loop(fd):
    recorder = runtime.Recorder(fd)
    losses = iter([0.5, None, 7, float("nan"), 1.0])
    result = recorder.run([(1, lambda: next(losses))], 10, 0, 1)
    assert result["steps"] == 4 and result["stamps"] == 5 and result["window_bytes"] > 0, result
    stamps, written = read_window(fd, 1, 16)
    assert [stamp & 255 for stamp in stamps] == [0, 1, 1, 1, 1], stamps
    assert written[0] == 0.5 and written[2] == 7.0, written
    assert math.isnan(written[1]) and math.isnan(written[3]), written

    seen = []
    result = recorder.run(
        [(2, lambda: seen.append("data")), (3, lambda: seen.append("forward")), (1, lambda: 2.0)], 2, 0, 0
    )
    assert result["steps"] == 2 and seen == ["data", "forward"] * 2, (result, seen)
    assert [stamp & 255 for stamp in read_window(fd, 0, 16)[0]] == [0, 2, 3, 1, 2, 3, 1]

    nan = float("nan")
    assert recorder.run([(1, lambda: nan)], 4, 0, 0, stop_at_nan=False)["steps"] == 4
    assert recorder.run([(1, lambda: None)], 100, 0, 0)["steps"] == 15, "the window ends the segment"
    assert recorder.run([(1, lambda: None)], 15, 1, 0)["steps"] == 1, "the time ends the segment"
    error = raises(OSError, "full", recorder.run, [(1, lambda: recorder.stamp(64))], 2, 0, 0)
    assert error.errno == errno.ENOSPC
    assert [stamp & 255 for stamp in read_window(fd, 0, 16)[0]] == [0, 64, 1]


def check_errors(fd):
    recorder = runtime.Recorder(fd)

    def fails():
        raise KeyError("from the step")

    raises(KeyError, "from the step", recorder.run, [(1, fails)], 5, 0, 0)
    assert len(read_window(fd, 0, 16)[0]) == 1, "the stamps of a segment that failed stay"
    raises(TypeError, "", recorder.run, [(1, lambda: "text")], 5, 0, 0)
    raises(RuntimeError, "inside run()", recorder.run, [(1, recorder.end)], 5, 0, 0)
    raises(RuntimeError, "inside run()", recorder.run, [(1, lambda: recorder.begin(0, 1))], 5, 0, 0)
    raises(ValueError, "last part", recorder.run, [], 5, 0, 0)
    raises(ValueError, "last part", recorder.run, [(2, fails)], 5, 0, 0)
    raises(ValueError, "only the last", recorder.run, [(1, fails), (1, fails)], 5, 0, 0)
    raises(TypeError, "a part is", recorder.run, [fails], 5, 0, 0)
    raises(TypeError, "a part is", recorder.run, [(1, 5)], 5, 0, 0)
    raises(ValueError, "max_steps", recorder.run, [(1, fails)], 0, 0, 0)
    raises(ValueError, "max_ns", recorder.run, [(1, fails)], 1, -1, 0)
    recorder.run([(1, lambda: None)], 1, 0, 0)


def check_gather(fd):
    recorder = runtime.Recorder(fd)
    images = array.array("f", [float(i) for i in range(12)])  # 4 rows of 3
    labels = array.array("q", [10, 11, 12, 13])
    batch = array.array("f", [0.0] * 6)
    batch_labels = array.array("q", [0, 0])
    order = array.array("q", [3, 0, 1, 2, 2, 2])  # 3 batches of 2
    gather = runtime.Gather(
        address(order),
        3,
        2,
        [(address(images), address(batch), 12), (address(labels), address(batch_labels), 8)],
    )
    seen = []
    steps = recorder.run([(0, gather), (1, lambda: seen.append((list(batch), list(batch_labels))))], 4, 0, 0)[
        "steps"
    ]
    assert steps == 4
    assert [labels for _, labels in seen] == [[13, 10], [11, 12], [12, 12], [13, 10]], seen
    assert seen[0][0] == [9.0, 10.0, 11.0, 0.0, 1.0, 2.0], seen
    assert gather.next == 1
    gather.fill()
    assert list(batch_labels) == [11, 12] and gather.next == 1
    gather()
    assert gather.next == 2
    gather.next = 0
    gather()
    assert list(batch_labels) == [13, 10]
    assert [stamp & 255 for stamp in read_window(fd, 0, 16)[0]] == [0, 1, 1, 1, 1], (
        "boundary 0 takes no stamp"
    )
    raises(ValueError, "next", setattr, gather, "next", 3)
    raises(ValueError, "batches", runtime.Gather, address(order), 0, 2, [])
    raises(ValueError, "address", runtime.Gather, 0, 1, 2, [])
    raises(ValueError, "a tensor is", runtime.Gather, address(order), 1, 2, [5])


def check_files():
    with tempfile.TemporaryFile() as file:
        file.write(b"something else altogether")
        file.flush()
        raises(OSError, "TTSTAMPS", runtime.Recorder, file.fileno())
    with tempfile.TemporaryFile() as file:
        runtime.Recorder(file.fileno(), 16)
        raises(OSError, "another capacity", runtime.Recorder, file.fileno(), 17)
    raises(OSError, "", runtime.Recorder, -1)
    raises(ValueError, "capacity", runtime.Recorder, 0, 70000)


def references(fd):
    if not hasattr(sys, "getrefcount"):
        return
    recorder = runtime.Recorder(fd)

    def step():
        return None

    before = sys.getrefcount(step), sys.getrefcount(runtime.Recorder), sys.getrefcount(None)
    for _ in range(200):
        recorder.run([(1, step)], 10, 0, 0)
        runtime.Recorder(fd)
    after = sys.getrefcount(step), sys.getrefcount(runtime.Recorder), sys.getrefcount(None)
    assert before[:2] == after[:2] and abs(before[2] - after[2]) < 50, (before, after)


with tempfile.TemporaryFile() as recorder_file:
    for check in (check_stamps, check_loop, check_errors, check_gather, references):
        check(recorder_file.fileno())
check_files()
print(f"passed {sys.version_info[0]}.{sys.version_info[1]}")
