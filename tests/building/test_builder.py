"""A plug-in is built once, from nothing to nothing in between; every way to fail has its words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from timetrial import building
from timetrial.building import store
from timetrial.building.plan import Plan
from timetrial.building.recipes import Recipe
from timetrial.core import native
from timetrial.errors import InputError, Unavailable

Calls = Callable[[], int]
MakeCompiler = Callable[..., Path]

BUILD_FAKE = """
import pathlib, sys
from timetrial import building
from timetrial.building.recipes import Recipe
from timetrial.building.target import Target
target = Target("fake 1.0", "1.0", pathlib.Path(sys.argv[1]), (), ())
print(building.ensure(building.make_plan(Recipe("fake", "libtorch", lambda: target, seconds=1))))
"""


def quiet(words: str) -> None:
    del words


def leftovers(folder: Path) -> list[str]:
    """What a build left behind besides what it is to leave."""
    return sorted(path.name for path in (folder / "v1/native/backends").glob("making-*"))


def test_it_is_built_once_with_a_word(plan: Plan, calls: Calls, own_cache: Path) -> None:
    said: list[str] = []
    assert building.lookup(plan) is None
    built = building.ensure(plan, said.append)
    assert said == ["building fake for fake 1.0, once: about 1 s"]
    assert building.ensure(plan, said.append) == building.lookup(plan) == built
    assert (calls(), len(said)) == (1, 1)
    assert leftovers(own_cache) == []
    assert built.parent.match("native/backends"), "records know a backend by this folder"
    assert json.loads(built.with_suffix(".json").read_text())["target"]["name"] == "fake 1.0"


def test_whatever_it_depends_on_makes_another_key(
    plan: Plan, recipe: Recipe, compiler: MakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {plan.key, replace(plan, recipe=replace(recipe, flags=("-O3",))).key}
    keys.add(replace(plan, target=replace(plan.target, name="fake 1.1")).key)
    copy = tmp_path / "libcopy.so"
    copy.write_bytes(plan.target.library.read_bytes())
    keys.add(replace(plan, target=replace(plan.target, library=copy)).key)
    os.utime(copy, ns=(1, 1))  # another build of the same version, in the same place
    keys.add(replace(plan, target=replace(plan.target, library=copy)).key)
    compiler(version="2")
    keys.add(building.make_plan(recipe).key)
    for folder, name in (("sources", "libtorch/new.h"), ("include", "timetrial/backend.h")):
        tree = tmp_path / folder
        for source in ("sources/libtorch", "include/timetrial"):
            (tree / source).mkdir(parents=True)
        changed = tree / folder / name
        changed.write_text("// changed\n")
        monkeypatch.setattr(native, "native_dir", lambda tree=tree: tree)
        keys.add(plan.key)
    assert len(keys) == 8


@pytest.mark.parametrize("damage", ["truncated", "other bytes", "no manifest", "rubbish", "no plug-in"])
def test_a_damaged_plugin_is_built_anew(plan: Plan, calls: Calls, damage: str) -> None:
    built = building.ensure(plan, quiet)
    manifest, content = built.with_suffix(".json"), built.read_bytes()
    if damage == "truncated":
        built.write_bytes(content[:1000])
    elif damage == "other bytes":
        built.write_bytes(bytes(len(content)))
    elif damage == "no manifest":
        manifest.unlink()
    elif damage == "rubbish":
        manifest.write_text("[]")
    else:
        built.unlink()
    assert building.lookup(plan) is None
    assert building.ensure(plan, quiet).read_bytes() == content
    assert calls() == 2


def test_a_compiler_that_fails_half_way_leaves_nothing_but_its_log(
    recipe: Recipe, compiler: MakeCompiler, calls: Calls, own_cache: Path, plugin: Path
) -> None:
    compiler(
        f"head -c 1000 {plugin} > $output; echo 'backend.cpp:7: note: in this call'; "
        "echo 'backend.cpp:7:3: error: no such thing'; exit 1"
    )
    plan = building.make_plan(recipe)
    with pytest.raises(Unavailable) as raised:
        building.ensure(plan, quiet)
    log = store.path_of(plan, ".log")
    assert str(raised.value).splitlines() == [
        "fake could not be built for fake 1.0: the compiler failed with exit code 1:",
        "  backend.cpp:7:3: error: no such thing",
        f"  all of it: {log}",
    ]
    assert "note: in this call" in log.read_text()
    assert building.lookup(plan) is None
    assert leftovers(own_cache) == []
    assert not list(own_cache.rglob("*.so"))
    with pytest.raises(Unavailable, match="no such thing"):  # an experiment asks once for each of its cases
        building.ensure(plan, quiet)
    assert calls() == 1
    compiler()
    assert building.ensure(plan, quiet, again=True).exists()
    assert not log.exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kill -9 $$", "the compiler ended with signal 9:\n  (it said nothing)"),
        ("exit 0", "the compiler made no plug-in:"),
        ("echo rubbish > $output", "was built for fake 1.0 but does not load"),
        ("seq 100; exit 3", "exit code 3:\n  95\n  96\n  97\n  98\n  99\n  100\n  all of it: /"),
        ("echo '/usr/bin/ld: cannot find -lc10'; exit 1", "cannot find -lc10"),
        (
            "echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1",
            "Killed signal terminated program cc1plus",
        ),
    ],
)
def test_other_failures_are_in_words(
    recipe: Recipe, compiler: MakeCompiler, own_cache: Path, body: str, said: str
) -> None:
    compiler(body)
    with pytest.raises(Unavailable) as raised:
        building.ensure(building.make_plan(recipe), quiet)
    assert said in str(raised.value)
    assert not list(own_cache.rglob("*.so"))


def test_no_compiler(recipe: Recipe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    with pytest.raises(Unavailable, match=r"CXX=no-such-compiler -m64 is no program\): sudo apt"):
        building.make_plan(recipe)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"g\+\+ is not on PATH\): sudo apt install g\+\+"):
        building.make_plan(recipe)
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(Unavailable, match="does not work"):
        building.make_plan(recipe)


def test_a_cache_that_cannot_be_written(plan: Plan, own_cache: Path) -> None:
    own_cache.write_text("a file, where a folder should be")
    with pytest.raises(InputError, match="Set TIMETRIAL_CACHE to a folder that can be written"):
        building.ensure(plan, quiet)


def start_build(library: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILD_FAKE, str(library)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_builds_at_once_compile_once(
    recipe: Recipe, compiler: MakeCompiler, calls: Calls, plugin: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    compiler(f"while [ ! -e {gate} ]; do sleep 0.05; done; cp {plugin} $output")
    library = recipe.find_target().library
    first = start_build(library)
    wait_until(lambda: calls() == 1)
    second = start_build(library)
    assert second.stderr is not None
    assert "waiting: another process is building fake for fake 1.0" in second.stderr.readline()
    gate.touch()
    (path, _), (same, words) = first.communicate(timeout=60), second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert path == same
    assert "built by the other process" in words
    assert calls() == 1


def test_a_builder_that_is_killed_blocks_nobody(
    recipe: Recipe, compiler: MakeCompiler, calls: Calls, own_cache: Path, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    compiler(f"echo $$ > {child}.new; mv {child}.new {child}; sleep 60")
    killed = start_build(recipe.find_target().library)
    wait_until(child.exists)
    assert calls() == 1
    killed.kill()
    killed.communicate()
    compiling = Path(f"/proc/{child.read_text().strip()}")
    wait_until(lambda: not compiling.exists())  # the compiler ends with it
    (abandoned,) = leftovers(own_cache)
    os.utime(own_cache / "v1/native/backends" / abandoned, (0, 0))
    compiler()
    assert building.ensure(building.make_plan(recipe), quiet).exists()
    assert leftovers(own_cache) == []


def test_an_interrupt_ends_the_compiler_and_its_children(
    recipe: Recipe, compiler: MakeCompiler, own_cache: Path, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    compiler(f"sh -c 'echo $$ > {child}.new; mv {child}.new {child}; exec sleep 60'; true")
    builder = start_build(recipe.find_target().library)
    wait_until(child.exists)
    builder.send_signal(signal.SIGINT)
    builder.communicate(timeout=60)
    status = Path(f"/proc/{child.read_text().strip()}/stat")
    wait_until(lambda: not status.exists() or status.read_text().split()[2] == "Z")
    assert leftovers(own_cache) == []
    assert not list(own_cache.rglob("*.log"))
