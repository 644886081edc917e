"""Functions in place of words: imported where they can be, carried where they cannot, refused in words."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from launching import SHORT

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.contenders import functions, resolve
from timetrial.contenders.functions import carried_folder, short_names, word_of
from timetrial.environments import Interpreter
from timetrial.errors import InputError
from timetrial.launch import LaunchPlan, run_launch
from timetrial.races.side import experiment_of, sides_of
from timetrial.records.model import LaunchRecord
from timetrial.workloads import prepare

NOTHING = Workload(NO_NETWORK, NO_NETWORK, None, {})
SIZE = 3.0


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))


def measured(word: str, folder: Path) -> LaunchRecord:
    measure = dataclasses.replace(SHORT, max_steps=20)
    prepared = prepare(NOTHING, seed=1, epochs=1)
    return run_launch(LaunchPlan(Case(word, NOTHING), prepared, "speed", folder, measure=measure))


def make_step() -> Callable[[], float]:
    return lambda: SIZE


def in_session(text: str) -> dict[str, Any]:
    """What a notebook's cell defines: no other process can import it."""
    module = types.ModuleType("__main__")
    exec(text, vars(module))
    return vars(module)


class Trainer:
    def __init__(self, loss: float):
        self.loss = loss
        self.weights = bytes(1000)

    def make(self) -> Callable[[], float]:
        return lambda: self.loss


def test_what_can_be_imported_is_its_word(tmp_path: Path) -> None:
    word = word_of(make_step)
    assert word == "test_functions:make_step"
    assert carried_folder(word) is None
    record = measured(word, tmp_path / "launch")
    assert record.outcome == "ok", record.reason


def _closure() -> Callable[[], Any]:
    loss = 2.5

    def make() -> Callable[[], float]:
        return lambda: loss

    return make


def _of_a_cell() -> Callable[[], Any]:
    text = "scale = 2.5\ndef helper():\n    return scale\ndef make():\n    return helper\n"
    function: Callable[[], Any] = in_session(text)["make"]
    return function


def _of_an_unknown_module() -> Callable[[], Any]:
    module = types.ModuleType("of_a_test_that_nobody_finds")
    module.__file__ = "/nowhere/of_a_test_that_nobody_finds.py"
    exec("def helper():\n    return 2.5\ndef make():\n    return helper\n", vars(module))
    sys.modules[module.__name__] = module
    function: Callable[[], Any] = module.make
    return function


CARRIED: dict[str, Callable[[], Callable[[], Any]]] = {
    "closure": _closure,
    "lambda": lambda: lambda: lambda: 2.5,
    "partial": lambda: functools.partial(lambda loss: lambda: loss, 2.5),
    "bound method": lambda: Trainer(2.5).make,
    "object": lambda: functools.partial(Trainer(2.5).make),
    "cell": _of_a_cell,
    "module": _of_an_unknown_module,
}


@pytest.mark.parametrize("kind", CARRIED)
def test_what_cannot_be_imported_is_carried(kind: str, tmp_path: Path) -> None:
    function = CARRIED[kind]()
    word = word_of(function)
    assert word == word_of(function)
    assert word.startswith("carried_")
    record = measured(word, tmp_path / "launch")
    assert record.outcome == "ok", record.reason
    assert record.backend["name"] == word


def test_a_real_session_races_its_own_functions(tmp_path: Path) -> None:
    """As in a cell: __main__, variables around it, and the same name twice."""
    script = (
        "import timetrial as tt\n"
        "scale = 2.0\n"
        "def make():\n    return lambda: scale\n"
        "before = make\n"
        "def make():\n    return lambda: scale + 1\n"
        "results = tt.run(callable=[before, make], launches=1, quiet=True, results=RESULTS)\n"
        "print(results)\n"
        "print([row.outcome for row in results])\n"
        "print(tt.run(callable=make, launches=1, quiet=True, results=RESULTS))\n"
        "one, other = (results.sel(callable=it).rows[0].case.backend for it in (make, before))\n"
        "assert one != other\n"
    ).replace("RESULTS", repr(str(tmp_path / "results")))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "['ok', 'ok']" in done.stdout
    both, one = done.stdout.split("['ok', 'ok']")
    assert {line[:8] for line in both.splitlines() if line.startswith("make (")} == {"make (1)", "make (2)"}
    assert any(line.startswith("make ") for line in one.splitlines())


def test_names_are_short_where_they_tell_apart() -> None:
    one, other, third = word_of(CARRIED["closure"]()), word_of(CARRIED["lambda"]()), word_of(_of_a_cell())
    assert short_names([one, other, "a.b:make_step"]) == {one: "make", other: "lambda"}
    assert short_names([third, "a.b:make", one, third]) == {third: "make (1)", one: "make (2)"}


def test_sides_may_be_functions_lists_and_tables() -> None:
    closure = CARRIED["closure"]()
    sides = sides_of([closure, [make_step, {"callable": make_step}], "eigen"])
    assert [side.keys.get("callable") for side in sides] == [
        word_of(closure), "test_functions:make_step", make_step, None,
    ]  # fmt: skip
    mapped = experiment_of(sides[1:3], {}, 1).cases
    assert [one.case.backend for one in mapped] == ["test_functions:make_step"] * 2
    cases = experiment_of(sides_of([closure, make_step]), {"threads": 1}, 1).cases
    assert [one.case.settings["threads"] for one in cases] == ["1", "1"]
    twice = experiment_of(sides_of([closure, closure]), {}, 1).cases
    assert len({one.case.id for one in twice}) == 2


def test_a_function_that_is_redefined_is_another_one() -> None:
    one, other = (in_session(f"def make():\n    return lambda: {loss}\n")["make"] for loss in (1.0, 2.0))
    assert word_of(one) != word_of(other)
    assert word_of(one) == word_of(in_session("def make():\n    return lambda: 1.0\n")["make"])


# -- what cannot be ------------------------------------------------------------------------------------


def _uses(value: Any) -> Callable[[], Any]:
    def make() -> Callable[[], Any]:
        return lambda: value

    return make


def _uses_what_uses(value: Any) -> Callable[[], Any]:
    helper = _uses(value)

    def make_outer() -> Any:
        return helper()

    return make_outer


def _generator() -> Any:
    yield


async def _async() -> None: ...


def _needs(size: int, *, device: str) -> None: ...


LOCKED = "import threading\nlock = threading.Lock()\ndef make():\n    return lambda: lock\n"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "open file": (lambda: _uses(open(os.devnull, "w")), r"value, of type TextIOWrapper \(Cannot pickle"),  # noqa: SIM115
    "of the step alone": (lambda: in_session(LOCKED)["make"], "make uses lock, of type lock"),
    "lock": (lambda: _uses(threading.Lock()), "make uses value, of type lock"),
    "generator object": (lambda: _uses(one for one in ()), "make uses value, of type generator"),
    "deep": (lambda: _uses_what_uses(threading.Lock()), "make_outer uses helper; helper uses value"),
    "bound": (lambda: Trainer(threading.Lock()).make, "make uses Trainer, of type Trainer"),  # type: ignore[arg-type]
    "partial": (lambda: functools.partial(lambda one: one, threading.Lock()), "uses argument 1, of type lo"),
    "gpu": (lambda: _uses(SimpleNamespace(is_cuda=True)), "uses value, which lies on a GPU"),
    "generator": (lambda: _generator, "'_generator' is a generator"),
    "async": (lambda: _async, "'_async' is async"),
    "arguments": (lambda: _needs, "'_needs' needs size, device"),
    "arguments of a lambda": (lambda: lambda x: x, "'lambda' needs x"),
}  # fmt: skip


@pytest.mark.attempt
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_carried_is_said(kind: str) -> None:
    make, said = REFUSED[kind]
    with pytest.raises(InputError, match=said):
        word_of(make())
    assert not list(functions_in_cache())


def functions_in_cache() -> list[Path]:
    from timetrial.workloads.cache import cache_folder

    return [*cache_folder().glob("v1/functions/*/*.py")]


@pytest.mark.attempt
def test_what_is_too_much_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST_BYTES", 500)
    with pytest.raises(InputError, match=r"'make' takes 0 MB along, 0 MB of them in Trainer; at most 0 MB"):
        word_of(Trainer(1.0).make)


@pytest.mark.attempt
@pytest.mark.parametrize("side", [3, None, (one for one in ()), 2.5])
def test_what_is_no_side(side: object) -> None:
    with pytest.raises(InputError, match="expected a function that makes a step, its word"):
        sides_of([side])


@pytest.mark.attempt
def test_a_function_that_left_the_cache() -> None:
    word = word_of(CARRIED["closure"]())
    [file] = functions_in_cache()
    file.chmod(0o644)
    file.write_text("")
    with pytest.raises(InputError, match=r"carried out of a Python session and is no longer in the cache"):
        resolve(Case(word, NOTHING))
    assert word_of(CARRIED["closure"]()) == word  # makes it anew
    assert resolve(Case(word, NOTHING)).kind == "callable"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("version", "cloudpickle", "said"),
    [
        ("3.9.1", "3.1", "carried out of a session of Python 3.*, as its bytecode; .* is Python 3.9"),
        (".".join(map(str, sys.version_info[:3])), None, "has no cloudpickle to read it"),
    ],
)
def test_another_interpreter_must_be_able_to_read_it(
    monkeypatch: pytest.MonkeyPatch, version: str, cloudpickle: str | None, said: str
) -> None:
    word = word_of(CARRIED["closure"]())
    monkeypatch.setattr(Interpreter, "version", property(lambda self: version))
    monkeypatch.setattr(
        Interpreter, "versions", lambda self, modules: {"numpy": "2", "cloudpickle": cloudpickle}
    )
    with pytest.raises(InputError, match=said):
        resolve(Case(word, NOTHING))


@pytest.mark.attempt
def test_what_fails_where_it_is_read_ends_its_launch(tmp_path: Path) -> None:
    """A module that only this session has, and that is not the function's own."""
    module = types.ModuleType("of_this_session_only")
    exec("def helper():\n    return 1.0\n", vars(module))
    sys.modules[module.__name__] = module
    function = in_session(
        "import of_this_session_only\ndef make():\n    return of_this_session_only.helper\n"
    )
    try:
        record = measured(word_of(function["make"]), tmp_path / "launch")
    finally:
        del sys.modules[module.__name__]
    assert record.outcome in ("crash", "unavailable")
    assert "of_this_session_only" in str(record.reason)
