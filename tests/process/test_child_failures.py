"""Each way in which timetrial-child gives up: one `failed` event, in words, and exit code 1."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import Event, Job, child, write_job


def fail(folder: Path, job: Job | str, *commands: str) -> Event:
    with child(folder, job) as contender:
        for command in commands:
            with contextlib.suppress(BrokenPipeError):  # it may have given up by now
                contender.send(command)
        event = contender.event()
        while event is not None and event["event"] != "failed":
            event = contender.event()
        assert event is not None
        assert contender.event() is None
        assert contender.wait() == 1
    return event


def spoil(path: str, value: Any) -> Callable[[Path, Job], None]:
    """Sets `path` ("a.b.0") of the job."""

    def change(_: Path, job: Job) -> None:
        *way, last = path.split(".")
        at: Any = job
        for key in way:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[last] = value

    return change


def replace(name: str, array: Any) -> Callable[[Path, Job], None]:
    return lambda folder, _: np.save(folder / f"{name}.npy", np.asarray(array))


LABELS = [0] * 10
CASES = [
    (spoil("protocol", 1), "job", "crash", "protocol is 1, this program speaks 2"),
    (spoil("task", "trian"), "job", "crash", "task 'trian'. Did you mean 'train'?"),
    (spoil("batch_size", 0), "job", "crash", "batch"),
    (spoil("network.output", "loss"), "job", "crash", "should be 'fc' and 'loss'"),
    (spoil("network.nodes.2.kind", "dens"), "load", "unavailable", "no layer 'dens'; it has: input, dense"),
    (
        spoil("backend.plugin", "/nowhere/x.so"),
        "load",
        "unavailable",
        "plug-in '/nowhere/x.so' cannot be opened",
    ),
    (spoil("device", "cuda"), "load", "unavailable", "no device 'cuda'; it has: cpu"),
    (spoil("dtype", "f16"), "load", "unavailable", "no dtype 'f16'; it has: f32"),
    (spoil("optimizer.name", "lion"), "load", "unavailable", "no optimizer 'lion'; it has: sgd, adam"),
    (spoil("settings", {"treads": "1"}), "settings", "unavailable", "treads"),
    (spoil("settings", {"threads": "2"}), "settings", "unavailable", "threads"),
    (spoil("streams.train.tensors.images", "/nowhere/images.npy"), "build", "crash", "/nowhere/images.npy"),
    (replace("fc.weight", np.zeros((2, 6), np.float32)), "build", "crash", "fc.weight.npy"),
    (replace("fc.weight", np.zeros((3, 6))), "build", "crash", "fc.weight.npy"),
    (replace("images", np.zeros((10, 7), np.float32)), "build", "crash", "images.npy"),
    (replace("labels", np.zeros(9, np.int64)), "build", "crash", "labels.npy"),
    (replace("order", np.zeros((3, 5), np.int64)), "build", "crash", "order.npy"),
    (replace("labels", [3, *LABELS[1:]]), "run", "crash", "the label 3 is not in 0 to 2"),
    (replace("labels", [-1, *LABELS[1:]]), "run", "crash", "the label -1 is not in 0 to 2"),
    (replace("order", [[0, 1, 2, 10]]), "run", "crash", "the index 10 is not in 0 to 9"),
]


@pytest.mark.attempt
@pytest.mark.parametrize(("change", "where", "outcome", "text"), CASES, ids=range(len(CASES)))
def test_bad_job(
    tmp_path: Path, change: Callable[[Path, Job], None], where: str, outcome: str, text: str
) -> None:
    job = write_job(tmp_path)
    change(tmp_path, job)
    event = fail(tmp_path, job, "run 1 0 0")
    assert (event["where"], event["outcome"]) == (where, outcome), event
    assert text in event["text"]


@pytest.mark.attempt
@pytest.mark.parametrize("key", ["protocol", "backend", "task", "network", "settings", "batch_size"])
def test_missing_key_is_named(tmp_path: Path, key: str) -> None:
    job = write_job(tmp_path)
    del job[key]
    event = fail(tmp_path, job)
    assert (event["where"], event["outcome"]) == ("job", "crash")
    assert f"'{key}' not found" in event["text"]
    assert str(tmp_path / "job.json") in event["text"]


@pytest.mark.attempt
@pytest.mark.parametrize("text", ["", "{", "[]", '{"protocol": "one"}', "\x00\xff"])
def test_file_that_is_no_job(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.json").write_text(text, encoding="latin-1")
    assert fail(tmp_path, str(tmp_path / "job.json"))["where"] == "job"


@pytest.mark.attempt
def test_missing_job_file(tmp_path: Path) -> None:
    assert "there is no job file '/nowhere/job.json'" in fail(tmp_path, "/nowhere/job.json")["text"]


@pytest.mark.attempt
def test_parameter_without_file(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    del job["network"]["nodes"][2]["parameters"][0]["file"]
    assert fail(tmp_path, job)["text"] == "there are no initial values of the parameter 'fc.weight'"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("rum 1 0 0", "unknown command 'rum'. Did you mean 'run'?"),
        ("run", "STEPS '' is not a whole number"),
        ("run 5 x 0", "MAX_NS 'x' is not a whole number"),
        ("run 0 0 0", "segment of 0 steps in window 0"),
        ("stream tain", "the job has no stream 'tain'. Did you mean 'train'?"),
        ("dump weights /tmp", "tensors have no role 'weights'."),
        ("dump parameter /nowhere/dump", "cannot make the folder '/nowhere/dump'"),
        ("outputs /nowhere/outputs.npy", "/nowhere/outputs.npy"),
    ],
)
def test_bad_command(tmp_path: Path, command: str, text: str) -> None:
    event = fail(tmp_path, write_job(tmp_path), command)
    assert (event["where"], event["outcome"]) == (command.split()[0], "crash")
    assert text in event["text"]


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("settings", "where", "outcome", "text"),
    [
        ({"null.fail": "throw"}, "run", "crash", "an exception, as asked"),
        ({"null.fail": "oom"}, "run", "oom", "memory"),
        ({"null.fail": "throw", "null.fail_at": "build"}, "build", "crash", "an exception, as asked"),
        ({"null.fail": "unsupported_layer"}, "build", "unavailable", "the backend has no layer 'dense'"),
        ({"null.fail": "sulks"}, "settings", "unavailable", "sulks"),
    ],
)
def test_failing_backend(
    tmp_path: Path, settings: dict[str, str], where: str, outcome: str, text: str
) -> None:
    job = write_job(tmp_path, "null")
    job["settings"] = settings
    event = fail(tmp_path, job, "run 10 0 0")
    assert (event["where"], event["outcome"]) == (where, outcome), event
    assert text in event["text"]


@pytest.mark.parametrize("command", ["evaluate /tmp/x.npy", "outputs /tmp/x.npy"])
def test_backend_without_network_has_no_results(tmp_path: Path, command: str) -> None:
    event = fail(tmp_path, write_job(tmp_path, "null"), command)
    assert event["outcome"] == "unavailable"


def test_null_needs_neither_data_nor_weights(tmp_path: Path) -> None:
    job = write_job(tmp_path, "null")
    del job["streams"]
    for node in job["network"]["nodes"]:
        for parameter in node["parameters"]:
            del parameter["file"]
    with child(tmp_path, job) as contender:
        assert contender.expect("ready")["backend"]["flags"] == ["reads_no_data", "unprovable"]
        contender.do("stream train")
        contender.do("run 10 0 0")


@pytest.mark.attempt
def test_descriptor_that_is_no_recorder(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    no_recorder = os.open(tmp_path / "labels.npy", os.O_RDWR)
    with child(tmp_path, job, no_recorder) as contender:
        assert "descriptor 5 is no recorder file" in contender.expect("failed")["text"]
