"""timetrial-child does what PROTOCOL.md says, and its numbers are right."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import BATCH, CLASSES, SAMPLES, array_of, child, write_job
from numpy.typing import NDArray

from timetrial.core import child_path, native_dir, read_window, stamp_boundaries


def predictions(folder: Path, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Of the dense network at its initial weights."""
    images = array_of(folder, "images").astype(np.float64)[rows]
    result: NDArray[np.float64] = images @ array_of(folder, "fc.weight").T.astype(np.float64)
    return result + array_of(folder, "fc.bias")


def cross_entropy(outputs: NDArray[np.float64], labels: NDArray[Any]) -> float:
    exponents = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    shares = exponents / exponents.sum(axis=1, keepdims=True)
    return float(-np.log(shares[np.arange(len(labels)), labels]).mean())


def test_ready_says_phases_settings_and_backend(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    job["settings"] = {"threads": "1"}
    with child(tmp_path, job) as contender:
        ready = contender.expect("ready")
        contender.send("finish")
        assert contender.expect("finished") == {"event": "finished"}
        assert contender.event() is None
        assert contender.wait() == 0
    assert [phase["name"] for phase in ready["phases"]] == ["start", "import", "build"]
    times = [phase["ns"] for phase in ready["phases"]]
    assert times == sorted(times)
    assert 0 < ready["phases"][0]["rss_bytes"] <= 5_000_000, "memory before the backend"
    assert ready["settings"]["threads"]["effective"] == "1"
    assert ready["backend"]["name"] == "reference"
    assert ready["backend"]["parts"] == ["forward", "loss", "backward", "update"]
    assert ready["backend"]["flags"] == ["profiles"]


def test_run_stamps_every_step_and_its_first_loss_is_right(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        done = contender.do("run 5 0 0")
        stamps, losses = read_window(contender.recorder, 0)
    assert (done["steps"], done["stamps"], done["window"]) == (5, 6, 0)
    assert done["cpu_ns"] > 0
    assert done["rss_bytes"] > 0
    assert done["window_bytes"] > 0
    assert list(stamp_boundaries(stamps)) == [0, 1, 1, 1, 1, 1]
    rows = array_of(tmp_path, "order")[0]
    expected = cross_entropy(predictions(tmp_path, rows), array_of(tmp_path, "labels")[rows])
    assert losses[0] == pytest.approx(expected, rel=1e-6)
    assert len(losses) == 5


def test_profile_times_every_layer_of_steps_that_train(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.do("run 4 0 0")
        contender.do("reset")
        done = contender.do("profile 3")
        contender.do("run 1 0 1")
        plain, after = contender.losses(0), contender.losses(1)
    assert done["steps"] == 3
    found = {(row["node"], row["direction"]): row["ns"] for row in done["layers"]}
    assert {
        ("fc", "forward"), ("fc", "backward"), ("fc", "update"), ("loss", "loss"), ("images", "forward")
    } <= found.keys()  # fmt: skip
    assert all(len(times) == 3 for times in found.values())
    assert all(time > 0 for time in found["fc", "forward"])
    assert after == [plain[3]], "three profiled steps are three steps"


@pytest.mark.parametrize(
    ("backend", "task", "words"),
    [("null", "train", "does not time its layers"), ("reference", "gradient", "only a train step")],
)
def test_what_cannot_be_profiled_says_so(tmp_path: Path, backend: str, task: str, words: str) -> None:
    job = write_job(tmp_path, backend)
    job["task"] = task
    with child(tmp_path, job) as contender:
        contender.expect("ready")
        contender.send("profile 3")
        failed = contender.expect("failed")
    assert (failed["outcome"], failed["where"]) == ("unavailable", "profile")
    assert words in failed["text"]


def test_run_ends_after_its_time(tmp_path: Path) -> None:
    job = write_job(tmp_path, "null")
    job["settings"] = {"null.step_us": "1000"}
    with child(tmp_path, job) as contender:
        contender.expect("ready")
        assert 1 <= contender.do("run 60000 20000000 1")["steps"] <= 20


def test_parts_have_a_stamp_each_and_the_same_losses(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.do("run 4 0 0")
        contender.do("reset")
        contender.do("parts 4 0 1")
        stamps, losses = read_window(contender.recorder, 1)
        assert losses.tolist() == contender.losses(0)
    assert list(stamp_boundaries(stamps)) == [0, *([2, 3, 4, 5, 1] * 4)]


def test_parts_of_a_task_without_parts_are_data_and_step(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path) | {"task": "gradient"}) as contender:
        contender.expect("ready")
        contender.do("parts 2 0 0")
        assert list(stamp_boundaries(read_window(contender.recorder, 0)[0])) == [0, 2, 1, 2, 1]


def test_reset_and_stream_start_anew(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.do("run 7 0 0")
        contender.do("reset")
        contender.do("run 7 0 1")
        assert contender.losses(0) == contender.losses(1)
        contender.do("reset")
        contender.do("run 1 0 0")
        contender.do("stream proof")
        contender.do("reset")
        contender.do("run 7 0 0")
        assert contender.losses(0) == contender.losses(1)


def test_gradient_neither_advances_nor_updates(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.do("run 2 0 0")
        loss = contender.do("gradient")["loss"]
        assert contender.do("gradient")["loss"] == loss
        contender.do("run 1 0 0")
        assert contender.losses() == [loss]


def test_forward_task_has_no_loss_and_runs_on(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path) | {"task": "forward"}) as contender:
        contender.expect("ready")
        assert contender.do("run 5 0 0")["steps"] == 5
        assert all(math.isnan(loss) for loss in contender.losses())


def test_outputs_are_those_of_the_first_batch(tmp_path: Path) -> None:
    file = tmp_path / "with blanks" / "outputs.npy"
    file.parent.mkdir()
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.do(f"outputs {file}")
        shuffled = array_of(tmp_path, "order")[0]
        np.testing.assert_allclose(np.load(file), predictions(tmp_path, shuffled), rtol=1e-5)
        contender.do("stream test")
        contender.do(f"outputs {file}")
        np.testing.assert_allclose(np.load(file), predictions(tmp_path, np.arange(BATCH)), rtol=1e-5)


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "squared_error"])
def test_evaluate_does_not_count_the_padding(tmp_path: Path, loss: str) -> None:
    with child(tmp_path, write_job(tmp_path, loss=loss)) as contender:
        contender.expect("ready")
        contender.do("run 1 0 0")
        contender.do("reset")
        done = contender.do(f"evaluate {tmp_path / 'predictions.npy'}")
        contender.do("run 1 0 1")
        assert contender.losses(0) == contender.losses(1), "evaluation moved the stream"
    assert SAMPLES % BATCH != 0
    outputs, labels = predictions(tmp_path, np.arange(SAMPLES)), array_of(tmp_path, "labels")
    expected = (
        cross_entropy(outputs, labels)
        if loss == "softmax_cross_entropy"
        else float(((outputs - np.eye(CLASSES)[labels]) ** 2).mean())
    )
    assert done["samples"] == SAMPLES
    assert done["accuracy"] == pytest.approx((outputs.argmax(axis=1) == labels).mean())
    assert done["loss"] == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(np.load(tmp_path / "predictions.npy"), outputs, rtol=1e-5)


def test_dump_writes_every_tensor_of_a_role(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        assert contender.do(f"dump parameter {folder}")["tensors"] == ["fc.weight", "fc.bias"]
        np.testing.assert_array_equal(np.load(folder / "fc.weight.npy"), array_of(tmp_path, "fc.weight"))
        contender.do("gradient")
        contender.do(f"dump gradient {folder}")
        assert np.load(folder / "fc.bias.npy").shape == (CLASSES,)


def test_nan_ends_its_segment_and_nothing_else(tmp_path: Path) -> None:
    job = write_job(tmp_path, loss="squared_error")  # diverges; softmax would saturate
    job["optimizer"]["learning_rate"] = 1e30
    with child(tmp_path, job) as contender:
        contender.expect("ready")
        done = contender.do("run 100 0 0")
        assert done["steps"] < 100
        assert not math.isfinite(contender.losses()[-1])
        assert all(math.isfinite(loss) for loss in contender.losses()[:-1])
        contender.do("reset")
        contender.do("run 1 0 0")


def test_commands_are_queued(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path, "null")) as contender:
        contender.send("run 3 0 0\nrun 4 0 1\nfinish")
        contender.expect("ready")
        assert [contender.expect("done")["steps"] for _ in range(2)] == [3, 4]
        contender.expect("finished")


def test_end_of_commands_is_a_silent_end(tmp_path: Path) -> None:
    with child(tmp_path, write_job(tmp_path)) as contender:
        contender.expect("ready")
        contender.hang_up()
        assert contender.event() is None
        assert contender.wait() == 0


def test_backend_that_prints_disturbs_nothing(tmp_path: Path) -> None:
    job = write_job(tmp_path, "null")
    job["settings"] = {"null.fail": "print"}
    with child(tmp_path, job) as contender:
        contender.expect("ready")
        assert contender.do("run 3 0 0")["steps"] == 3
    assert "null prints on stdout" in (tmp_path / "stdout.txt").read_text()


def test_describe_is_json_alone() -> None:
    plugin = native_dir() / "backends" / "reference.so"
    run = subprocess.run([child_path(), "--describe", plugin], capture_output=True, text=True, check=True)
    described = json.loads(run.stdout)
    assert described["name"] == "reference"
    assert described["abi"] == 1
    assert described["tasks"] == ["train", "gradient", "forward"]
    assert "dense" in described["layers"]
    assert described["settings"] == ["threads", "reference.ties", "reference.rounding"]


def test_describe_says_why_not() -> None:
    run = subprocess.run([child_path(), "--describe", "/nowhere.so"], capture_output=True, text=True)
    assert run.returncode == 1
    assert (
        run.stderr == "timetrial-child: plug-in '/nowhere.so' cannot be opened: No such file or directory\n"
    )


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
def test_usage(arguments: list[str]) -> None:
    run = subprocess.run([child_path(), *arguments], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith("usage: timetrial-child")
