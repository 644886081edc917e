"""A contender that is no Python: the protocol in Lua, under a plain LuaJIT with a framework of our own.

Torch7 itself is proven by tests/frameworks/test_conformance.py where the user has named one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words
from required import machine_skip

from timetrial.contenders import registry
from timetrial.environments import framework_in
from timetrial.environments.install import install
from timetrial.environments.making import Wishes
from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord

LUAJIT = shutil.which("luajit")
pytestmark = pytest.mark.skipif(LUAJIT is None, reason=machine_skip("no luajit on PATH (apt install luajit)"))

PATH_LINE = f'package.path = "{registry.RUNTIME_FOLDER}/?.lua;" .. package.path\n'
NETWORK = """
[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 12 }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "fc2"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc2", "labels"]
"""
ENVIRONMENT = """
[[versions]]
version = "1"
program = "contender.lua"
executable = "bin/luajit"
user_path = "a folder with bin/luajit"

[versions.settings.threads]
environment = []
"""


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A framework's folder outside the package, installed from a user's folder with bin/luajit."""
    monkeypatch.setenv("TIMETRIAL_ENVIRONMENTS", str(tmp_path / "environments"))
    folder, place = tmp_path / "framework", tmp_path / "place"
    folder.mkdir()
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "luajit").symlink_to(str(LUAJIT))
    shutil.copy(Path(__file__).parent / "lua" / "adapter.lua", folder)
    (folder / "environment.toml").write_text(ENVIRONMENT)
    (folder / "contender.lua").write_text(
        PATH_LINE + f'require("lua.main")(arg[1], "{folder}/adapter.lua")\n'
    )
    framework = framework_in(folder)
    install(framework, framework.versions[0], Wishes(path=place))
    return str(folder)


def launched(tmp_path: Path, backend: str, network: str = NETWORK, **more: Any) -> LaunchRecord:
    file = tmp_path / "network.toml"
    file.write_text(network)
    return run_launch(make_plan(tmp_path / f"launch-{len(more)}", backend, network=str(file), **more))


def test_it_is_proven_and_timed(tmp_path: Path, backend: str) -> None:
    proof = launched(tmp_path, backend, purpose="proof", weight_decay=0.01)
    assert proof.outcome == "ok", words(proof)
    assert proof.parity is not None
    assert proof.parity.status == "passed"
    compared = {comparison.tensor for comparison in proof.parity.comparisons}
    assert {"gradient fc1.weight", "step 1: parameter fc2.bias", "evaluation: output"} <= compared
    timed = launched(tmp_path, backend, weight_decay=0.01, proof=proof.parity, settings={"threads": "1"})
    assert timed.outcome == "ok", words(timed)
    assert {"first", "steady", "detailed"} <= {segment.kind for segment in timed.segments}
    threads = next(setting for setting in timed.settings if setting.name == "threads")
    assert threads.status == "applied"
    assert "LuaJIT" in timed.facts["lua.version"]


@pytest.mark.parametrize("task", ["gradient", "forward"])
def test_tasks_without_update(tmp_path: Path, backend: str, task: str) -> None:
    record = launched(tmp_path, backend, task=task)
    assert record.outcome == "ok", words(record)


def test_it_learns(tmp_path: Path, backend: str) -> None:
    record = launched(tmp_path, backend, purpose="learning")
    assert record.outcome == "ok", words(record)
    assert record.evaluations[-1].accuracy > record.evaluations[0].accuracy


@pytest.mark.parametrize(
    ("fail", "outcome", "said"),
    [
        ("module", "unavailable", "module 'a_framework_that_is_not_there' not found"),
        ("step", "crash", "the step fails"),
    ],
)
def test_failures_are_data(tmp_path: Path, backend: str, fail: str, outcome: str, said: str) -> None:
    record = launched(tmp_path, backend, environment={"FAIL": fail})
    assert record.outcome == outcome, words(record)
    assert said in str(record.reason)
    assert "stack traceback" in record.stderr


def test_a_layer_it_lacks_is_unavailable(tmp_path: Path, backend: str) -> None:
    record = launched(tmp_path, backend, NETWORK.replace('"relu"', '"tanh"'))
    assert record.outcome == "unavailable"
    assert "no layer 'tanh'; it has: dense, flatten, relu, softmax_cross_entropy" in str(record.reason)


def run_lua(tmp_path: Path, code: str, *arguments: object) -> str:
    script = tmp_path / "script.lua"
    script.write_text(PATH_LINE + code)
    done = subprocess.run(
        [str(LUAJIT), str(script), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    value = {
        "words": ["", 'quote " slash \\ / tab \t', "line\nend", "ä\u20ac\U0001f600", "control \x01"],
        "numbers": [0, -1, 1.5e-7, 123456789012345, 0.1, 1e300],
        "empty": [{}, []],
        "deep": {"a": [{"b": None}, True, False]},
    }
    code = 'local json = require("lua.json")\nio.write(json.encode(json.decode(io.open(arg[1]):read("*a"))))'
    for ascii_only in (True, False):
        (tmp_path / "in.json").write_text(json.dumps(value, indent=1, ensure_ascii=ascii_only))
        assert json.loads(run_lua(tmp_path, code, tmp_path / "in.json")) == value


def test_json_keeps_every_digit_of_a_time_and_says_null_for_nan(tmp_path: Path) -> None:
    code = """
local json = require("lua.json")
io.write(json.encode(json.list({ 9007199254740993LL, 0/0, 1/0 })))
"""
    assert run_lua(tmp_path, code) == "[9007199254740993, null, null]"


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" 1}', "[1 2]", '"abc', "[1] 2", "nul", ""])
def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.json").write_text(text)
    code = 'io.write(tostring(select(2, pcall(require("lua.json").decode, io.open(arg[1]):read("*a")))))'
    assert "JSON, character " in run_lua(tmp_path, code, tmp_path / "in.json")


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 1, 5, 2)])
def test_arrays_go_there_and_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.save(tmp_path / "in.npy", array)
    code = 'local npy = require("lua.npy")\nlocal a = npy.map(arg[1])\nnpy.save(arg[2], a.data, a.shape)'
    run_lua(tmp_path, code, tmp_path / "in.npy", tmp_path / "out.npy")
    back = np.load(tmp_path / "out.npy")
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 2)), "expected float32 or int64 in C order"),
        (np.asfortranarray(np.zeros((2, 3), np.float32)), "expected float32 or int64 in C order"),
        (None, "not a .npy file"),
    ],
)
def test_arrays_that_it_cannot_read(tmp_path: Path, array: Any, said: str) -> None:
    file = tmp_path / "in.npy"
    file.write_bytes(b"something else, long enough")
    if array is not None:
        np.save(file, array)
    code = 'io.write(tostring(select(2, pcall(require("lua.npy").map, arg[1]))))'
    assert said in run_lua(tmp_path, code, file)


def test_a_file_that_is_cut_off_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "in.npy"
    np.save(file, np.zeros(100, np.float32))
    file.write_bytes(file.read_bytes()[:-1])
    code = 'io.write(tostring(select(2, pcall(require("lua.npy").map, arg[1]))))'
    assert "its data are cut off" in run_lua(tmp_path, code, file)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("kind", ["softmax_cross_entropy", "squared_error"])
def test_score_is_that_of_the_python_runtime(tmp_path: Path, runtime: Any, kind: str, nan: bool) -> None:
    generator = np.random.default_rng(1)
    predictions = generator.normal(size=(37, 5)).astype(np.float32)
    predictions[3] = 1.0  # the first of equals is the answer
    if nan:
        predictions[5, 2] = np.nan  # a wrong answer
    labels = generator.integers(0, 5, 37)
    np.save(tmp_path / "predictions.npy", predictions)
    np.save(tmp_path / "labels.npy", labels)
    expected = runtime("score").Score(kind)
    expected.add(predictions, labels)
    code = """
local npy, json = require("lua.npy"), require("lua.json")
local score = require("lua.score").new(arg[3])
score:add(npy.map(arg[1]).data, npy.map(arg[2]).data, 37, 5)
io.write(json.encode(score:result()))
"""
    found = json.loads(run_lua(tmp_path, code, tmp_path / "predictions.npy", tmp_path / "labels.npy", kind))
    assert found["accuracy"] == expected.result()["accuracy"]
    if nan:
        assert found["loss"] is None
    else:
        assert found["loss"] == pytest.approx(expected.result()["loss"], rel=1e-12)
