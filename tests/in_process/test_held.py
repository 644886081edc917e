"""Values that are held for a while come back, whoever leaves first."""

from __future__ import annotations

import os
import threading

import pytest

from timetrial.in_process.held import Hold, Knob


class Value:
    def __init__(self, key: str = "value", *, fails: bool = False):
        self._now: object = "first"
        self._fails = fails
        self.knob = Knob(key, self.read, self._write)

    def read(self) -> object:
        return self._now

    def _write(self, value: object) -> None:
        if self._fails:
            raise OSError("no")
        self._now = value


def test_nested() -> None:
    value = Value()
    outer = Hold([(value.knob, "outer")])
    inner = Hold([(value.knob, "inner")])
    assert value.read() == "inner"
    inner.release()
    assert value.read() == "outer"
    outer.release()
    assert value.read() == "first"


def test_who_leaves_below_others_hands_them_what_to_restore() -> None:
    value = Value()
    one, two, three = (Hold([(value.knob, name)]) for name in ("one", "two", "three"))
    one.release()
    assert value.read() == "three"
    three.release()
    assert value.read() == "two"
    two.release()
    assert value.read() == "first"


def test_from_several_threads() -> None:
    value = Value()
    others = threading.Barrier(8)

    def hold(number: int) -> None:
        for _ in range(50):
            one = Hold([(value.knob, number)])
            one.release()
        others.wait()

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value.read() == "first"


def test_one_that_cannot_be_written_takes_the_others_back() -> None:
    good, bad = Value("good"), Value("bad", fails=True)
    with pytest.raises(OSError, match="no"):
        Hold([(good.knob, "other"), (bad.knob, "other")])
    assert good.read() == "first"
    Hold([(good.knob, "other")]).release()  # and nothing is left of it
    assert good.read() == "first"


def test_a_fork_inside() -> None:
    value = Value()
    hold = Hold([(value.knob, "held")])
    child = os.fork()
    if child == 0:
        try:
            hold.release()
        finally:
            os._exit(0 if value.read() == "first" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert value.read() == "held"
    hold.release()
    assert value.read() == "first"
