"""What users see of it: `timetrial backends`, doctor, list, and an experiment where something is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from launching import workload

from timetrial import building
from timetrial.building import recipes
from timetrial.building.listing import BackendState, backend_states
from timetrial.building.recipes import Recipe
from timetrial.cases.case import Case
from timetrial.contenders import NotBuiltYet, resolve
from timetrial.errors import Unavailable
from timetrial.experiment.catalog import catalog
from timetrial.experiment.doctor import doctor

Calls = Callable[[], int]
NO_COMPILER = {"CXX": "/no/such/compiler"}


def timetrial(
    *words: str, cwd: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timetrial.cli.main", *words],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, **(environment or {})},
    )  # fmt: skip


@pytest.fixture
def only_fake(monkeypatch: pytest.MonkeyPatch, recipe: Recipe, compiler: Callable[..., Path]) -> Recipe:
    """The recipe `libtorch` makes something else, with a compiler that pretends."""
    del compiler
    fake = replace(recipe, name="libtorch")
    monkeypatch.setattr(recipes, "RECIPES", {"libtorch": fake})
    monkeypatch.setattr("timetrial.building.listing.RECIPES", {"libtorch": fake})
    return fake


def state_of(name: str) -> BackendState:
    return next(state for state in backend_states() if state.name == name)


def test_looking_builds_nothing(only_fake: Recipe, calls: Calls) -> None:
    words = "not built for fake 1.0 yet"
    check = next(check for check in doctor().checks if check.name == "backend libtorch")
    assert (check.state, words in check.detail) == ("ready", True)
    assert words in catalog("backends")["backends"]["libtorch"]
    assert "timetrial backends build libtorch" in catalog("backends")["backends"]["libtorch"]
    state = state_of("libtorch")
    assert (state.state, state.cure) == ("not built", "timetrial backends build libtorch")
    with pytest.raises(NotBuiltYet, match=words):
        resolve(Case("libtorch", workload("mlp")), build=False)
    assert calls() == 0


def test_the_first_case_builds_it_and_the_others_use_it(only_fake: Recipe, calls: Calls) -> None:
    first = resolve(Case("libtorch", workload("mlp")))
    assert resolve(Case("libtorch", workload("mlp"), settings={"threads": "1"})).path == first.path
    assert calls() == 1
    state = state_of("libtorch")
    assert (state.state, state.built_for, state.path) == ("built", "fake 1.0", str(first.path))
    check = next(check for check in doctor().checks if check.name == "backend libtorch")
    assert str(first.path) in check.detail


def test_a_plugin_for_another_version_is_not_used(
    only_fake: Recipe, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    old = resolve(Case("libtorch", workload("mlp"))).path
    newer = replace(only_fake, find_target=lambda: replace(only_fake.find_target(), name="fake 2.0"))
    monkeypatch.setattr(recipes, "RECIPES", {"libtorch": newer})
    monkeypatch.setattr("timetrial.building.listing.RECIPES", {"libtorch": newer})
    assert "there are older ones, for fake 1.0" in state_of("libtorch").detail
    assert resolve(Case("libtorch", workload("mlp"))).path != old
    assert calls() == 2


def test_a_name_that_is_none(tmp_path: Path) -> None:
    done = timetrial("backends", "build", "libtroch", cwd=tmp_path)
    assert done.returncode == 2
    assert "'libtroch'. Did you mean 'libtorch'?" in done.stderr


def test_the_list_as_json_and_for_people(tmp_path: Path) -> None:
    done = timetrial("backends", "list", "--json", cwd=tmp_path, environment=NO_COMPILER)
    states = {state["name"]: state for state in json.loads(done.stdout)["backends"]}
    assert states["eigen"]["state"] == "ready"
    assert Path(states["eigen"]["path"]).is_file()
    assert states["libtorch"]["state"] == "unavailable"
    assert "no C++ compiler (CXX=/no/such/compiler is no program)" in states["libtorch"]["detail"]
    assert "sudo apt install g++" in states["libtorch"]["cure"]
    shown = timetrial("backends", "list", cwd=tmp_path, environment=NO_COMPILER).stdout
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("eigen")] == [
        ["eigen", "ready"]
    ]


def test_without_a_compiler_the_others_still_run(tmp_path: Path) -> None:
    done = timetrial("backends", "build", "libtorch", cwd=tmp_path, environment=NO_COMPILER)
    assert done.returncode == 1
    assert "libtorch: unavailable: it is built on this machine, and there is no C++ compiler" in done.stderr
    words = ["run", "network=mlp", "dataset=synthetic", "backend=null,libtorch", "threads=1", "launches=1"]
    done = timetrial(*words, "effort=quick", "--json", cwd=tmp_path, environment=NO_COMPILER)
    assert done.returncode == 0, done.stderr
    outcomes = {case["axes"]["backend"]: case["outcome"] for case in json.loads(done.stdout)["cases"]}
    assert outcomes == {"null": "ok", "libtorch": "unavailable"}


def test_a_failed_build_is_a_row_and_is_tried_once(
    only_fake: Recipe, compiler: Callable[..., Path], calls: Calls
) -> None:
    compiler("echo 'x.cpp:1: error: broken'; exit 1")
    for threads in ("1", "2"):
        with pytest.raises(Unavailable, match="error: broken"):
            resolve(Case("libtorch", workload("mlp"), settings={"threads": threads}))
    assert calls() == 1
    assert building.lookup(building.make_plan(only_fake)) is None
