"""What can be said of a callable before anything starts, without running any of the user's code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.contenders import Contender, resolve
from timetrial.errors import InputError, Unavailable

Write = Callable[..., Path]
NOTHING = Workload(NO_NETWORK, NO_NETWORK, None, {})
FACTORIES = '''
"""Nothing here may be run: the last line says so."""
import functools
from math import floor as lowest

def make_step(size=3, *, seed=1):
    return lambda: None

def needs(size, seed=1, *, device):
    return lambda: None

async def waits():
    return lambda: None

class Trainer:
    def __call__(self):
        return None

@functools.lru_cache
def decorated(size):
    return lambda: None

if floor := None:
    def sometimes(): ...
elif True:
    def sometimes(size): ...

SIZE = 3
made = functools.partial(make_step, 3)
raise SystemExit("the module was run")
'''


def find(word: str, **settings: str) -> Contender:
    return resolve(Case(word, NOTHING, settings=settings))


@pytest.mark.parametrize(
    "name", ["make_step", "Trainer", "decorated", "sometimes", "made", "lowest", "Trainer.anything"]
)
def test_what_may_be_a_factory(project: Write, name: str) -> None:
    path = project("mine.py", FACTORIES)
    contender = find(f"mine:{name}")
    assert contender.kind == "callable"
    assert contender.path == path
    before = contender.fingerprint
    project("mine.py", FACTORIES + "\n")
    assert find(f"mine:{name}").fingerprint != before


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mien:make_step", "no module 'mien'. Did you mean 'mine'?"),
        ("no_such_module_at_all:make", "there is no module 'no_such_module_at_all'. Looked in"),
        ("nope:make", "there is no module 'nope'. Looked in"),  # not "Known: opcode"
        ("pkg.trainig:make", "no module 'pkg.trainig'. Did you mean 'training'?"),
        ("pkg.x:make", "no module 'pkg.x'. Known: training."),
        ("mine.py:make_step", "no module 'mine.py' ('mine' is a module, not a package)"),
        ("mine:make_stop", "the module 'mine' has no 'make_stop'. Did you mean 'make_step'?"),
        ("mine:SIZE", "'SIZE' is no function"),
        ("mine:waits", "'waits' is async"),
        ("mine:needs", "'needs' needs size, device; expected a function that can be called without"),
        ("broken:make", "broken.py:2: "),
    ],
)
def test_what_cannot_be(project: Write, word: str, said: str) -> None:
    project("mine.py", FACTORIES)
    project("broken.py", "x = 1\ndef make(:\n")
    project("pkg/__init__.py", "raise SystemExit('the package was run')")
    project("pkg/training.py", "def make(): ...")
    with pytest.raises(InputError) as raised:
        find(word)
    assert said in str(raised.value)
    assert f"callable '{word}'" in str(raised.value)


@pytest.mark.parametrize(
    "text", ["from os.path import *", "def __getattr__(name): ...", "globals()['make'] = 1", "exec('a = 1')"]
)
def test_names_that_no_statement_shows_are_left_to_the_launch(project: Write, text: str) -> None:
    project("hidden.py", text)
    assert find("hidden:make").kind == "callable"


def test_a_module_that_is_no_source_is_left_to_the_launch() -> None:
    assert find("math:floor").kind == "callable"
    assert find("sys:intern").kind == "callable"


def test_isa_does_not_apply(project: Write) -> None:
    project("mine.py", FACTORIES)
    with pytest.raises(InputError, match="isa=avx2 does not apply"):
        find("mine:make_step", isa="avx2")


def interpreter(path: Path, version: str) -> str:
    """A program that answers as an interpreter of this version would."""
    answer = f'{{"version": "{version}", "base": "/", "distributions": {{}}, "modules": {{}}}}'
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.attempt
def test_interpreters_that_will_not_do(project: Write, environment: Write, tmp_path: Path) -> None:
    project("mine.py", FACTORIES)
    bare = environment("bare", "1.0", numpy=False)
    with pytest.raises(InputError, match="there is no such interpreter; give a path"):
        find("mine:make_step", python="no/such/python")
    with pytest.raises(InputError, match=rf"did you mean {bare}\?"):
        find("mine:make_step", python=str(bare.parents[1]))
    with pytest.raises(Unavailable, match="is no working Python interpreter"):
        find("mine:make_step", python="/bin/true")
    with pytest.raises(Unavailable, match=f"has no NumPy.*{bare} -m pip install numpy"):
        find("mine:make_step", python=str(bare))
    with pytest.raises(Unavailable, match=r"is Python 3\.5\.2; timetrial needs 3\.6 or newer"):
        find("mine:make_step", python=interpreter(tmp_path / "old", "3.5.2"))


def test_an_adapter_given_by_path_has_the_same_interpreters(project: Write, environment: Write) -> None:
    adapter = project("mine/adapter.py", "")
    bare = environment("bare", "1.0", numpy=False)
    with pytest.raises(Unavailable, match="has no NumPy"):
        find(str(adapter.parent), python=str(bare))
    assert find(str(adapter.parent), python=str(environment("full", "1.0"))).interpreter is not None
