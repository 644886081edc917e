"""The command as a user types it, with real contenders: what must hold when something goes wrong."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from left_running import command_lines_with

TIMETRIAL = [sys.executable, "-m", "timetrial.cli.main"]
NULL = ["network=mlp", "dataset=synthetic", "backend=null", "threads=1", "effort=quick"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    lock = tmp_path / "lock"
    return {**os.environ, "TIMETRIAL_LOCK": str(lock), "TIMETRIAL_CACHE": str(tmp_path / "cache")}


def start(*words: str, cwd: Path, env: dict[str, str], cpus: set[int] | None = None) -> subprocess.Popen[str]:
    def prepare() -> None:
        # Whoever runs the tests may have ignored these (a background job, nohup), and that is inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if cpus:
            os.sched_setaffinity(0, cpus)

    return subprocess.Popen(
        [*TIMETRIAL, *words], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=prepare,
    )  # fmt: skip


def wait_for(folder: Path, place: str) -> None:
    deadline = time.monotonic() + 120
    while not list(folder.glob(place)):
        assert time.monotonic() < deadline, f"no {place} within two minutes"
        time.sleep(0.05)


def wait_for_launch(folder: Path) -> None:
    wait_for(folder, "results/*/launches/001")


@pytest.mark.attempt
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_stopped_keeps_finished_records_and_leaves_nothing_running(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    running = start("run", *NULL, "launches=50", "--json", cwd=tmp_path, env=environment)
    wait_for_launch(tmp_path)
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number, err
    (case,) = json.loads(out)["cases"]
    assert case["outcome"] == "ok"
    assert 1 <= case["launches"]["ok"] < 50
    assert case["step_time_ns"]["estimate"] > 0
    assert "Traceback" not in err
    assert not command_lines_with("timetrial-child", str(tmp_path))
    assert not [*tmp_path.glob("results/*/*/*/home"), *tmp_path.glob("results/*/*/*/tmp")]


@pytest.mark.attempt
def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path, environment: dict[str, str]) -> None:
    words = [*TIMETRIAL, "run", *NULL, "launches=3", "--json"]
    running = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    wait_for_launch(tmp_path)
    running.send_signal(signal.SIGHUP)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert json.loads(out)["cases"][0]["launches"] == {"asked": 3, "ok": 3}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("verb", "words", "place"),
    [
        ("run", [*NULL, "launches=6", "isolated=true"], "results/*/launches/002"),
        (
            "race",
            ["--no-confirm", *NULL[:-1], "null.work_units=20,40"],
            "results/*/pairs/001",
        ),
    ],
)
def test_what_was_killed_is_resumed(
    tmp_path: Path, environment: dict[str, str], verb: str, words: list[str], place: str
) -> None:
    killed = start(verb, *words, cwd=tmp_path, env=environment)
    wait_for(tmp_path, place)
    killed.kill()
    killed.communicate(timeout=60)
    (folder,) = (tmp_path / "results").iterdir()
    before = {path: path.read_bytes() for path in folder.rglob("record.json")}
    assert before
    resumed = start(verb, "--resume", folder.name[:6], "--json", cwd=tmp_path, env=environment)
    out, err = resumed.communicate(timeout=300)
    assert resumed.returncode in (0, 1), err  # 1: the challenger is worse
    after = {path: path.read_bytes() for path in folder.rglob("record.json")}
    assert before.items() < after.items()
    assert not [path for name in ("home", "tmp", "unfinished") for path in folder.rglob(name)]
    if verb == "run":
        (case,) = json.loads(out)["cases"]
        assert case["launches"] == {"asked": 6, "ok": 6}
        launches = [json.loads(text) for path, text in after.items() if "launches" in path.parts]
        assert sorted(one["block"] for one in launches) == list(range(6))
    again = start(verb, "--resume", folder.name, cwd=tmp_path, env=environment)
    assert "is whole: nothing is missing" in again.communicate(timeout=60)[1]
    assert again.returncode == 2


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--resume", "7f3a"], "There are no records at '7f3a'"),
        (["run", "first-look", "--resume", "7f3a"], "and first-look was given as well"),
        (["run", "--dry-run", "--resume", "7f3a"], "and --dry-run was given as well"),
        (["race", "--metric", "peak_memory", "--resume", "7f3a"], "and --metric was given as well"),
    ],
)
def test_what_cannot_be_resumed(
    tmp_path: Path, environment: dict[str, str], words: list[str], said: str
) -> None:
    asked = start(*words, cwd=tmp_path, env=environment)
    assert said in " ".join(asked.communicate(timeout=60)[1].split())
    assert asked.returncode == 2


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("limits", "cases", "said"),
    [
        ((60, 60), 1, "This process may open 60 files (ulimit -Hn), and one contender needs 92."),
        ((99, 99), 2, "2 contenders at once need 104. Raise the limit, or let each be alone: isolated=true."),
        ((60, 4096), 1, None),  # what may be raised is
    ],
)
def test_who_may_open_few_files(
    tmp_path: Path, environment: dict[str, str], limits: tuple[int, int], cases: int, said: str | None
) -> None:
    backend = "backend=" + ",".join(["null"] * cases)
    words = [*TIMETRIAL, "run", "network=mlp", "dataset=synthetic", backend, "threads=1", "launches=1"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
    )  # fmt: skip
    assert done.returncode == (0 if said is None else 2), done.stderr
    assert (said or "") in " ".join(done.stderr.split())
    assert (tmp_path / "results").exists() is (said is None)


@pytest.mark.attempt
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_output_that_takes_no_table_loses_nothing(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TIMETRIAL, "run", *NULL, "launches=2", *words], cwd=tmp_path, env=environment, check=False,
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    kind = "JSON" if words else "table"
    assert done.stderr == (
        f"timetrial: standard output took no {kind} (No space left on device). Nothing is lost: "
        f"timetrial show results/{folder.name}\n"
    )


@pytest.mark.attempt
def test_nobody_reads_the_table_any_more(tmp_path: Path, environment: dict[str, str]) -> None:
    running = start("run", *NULL, "launches=2", cwd=tmp_path, env=environment)
    assert running.stdout is not None
    running.stdout.close()
    running.stdout = None
    _, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert "standard output took no table (Broken pipe). Nothing is lost: timetrial show results/" in err


@pytest.mark.attempt
def test_a_terminal_without_unicode_gets_a_table(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*TIMETRIAL, "run", *NULL, "launches=2"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**environment, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "null" in done.stdout
    assert "?" in done.stdout


@pytest.mark.attempt
def test_a_second_experiment_is_told_who_measures(tmp_path: Path, environment: dict[str, str]) -> None:
    first = start("run", *NULL, "launches=50", cwd=tmp_path, env=environment)
    wait_for_launch(tmp_path)
    second = start("run", *NULL, cwd=tmp_path, env=environment)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert str(first.pid) in err
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130


def test_a_profile_of_real_contenders(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["network=mlp", "dataset=synthetic", "backend=reference,eigen,null", "threads=1", "--json"]
    words += ["batch_size=8", "effort=quick"]
    running = start("profile", *words, cwd=tmp_path, env=environment)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    reference, eigen, null = json.loads(out)["cases"]
    for case in (reference, eigen):
        assert (case["outcome"], case["parity"]) == ("ok", "passed")
        assert case["profiled_steps"] > 0
        assert sum(layer["share"] for layer in case["layers"]) == pytest.approx(1)
        products = {
            layer["node"]: layer["multiply_accumulates"]
            for layer in case["layers"]
            if layer["direction"] == "forward" and layer["multiply_accumulates"]
        }
        assert products == {"fc1": 8 * 784 * 512, "fc2": 8 * 512 * 512, "fc3": 8 * 512 * 10}
    assert null["outcome"] == "unavailable"
    assert null["warnings"] == ["null does not time its layers"]


def test_one_cpu_has_unavailable_rows_and_ends_well(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["network=mlp", "dataset=synthetic", "backend=null", "threads=1,2", "launches=1", "--json"]
    words += ["effort=quick"]
    cpu = min(os.sched_getaffinity(0))
    running = start("run", *words, cwd=tmp_path, env=environment, cpus={cpu})
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert [case["outcome"] for case in json.loads(out)["cases"]] == ["ok", "unavailable"]


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["network=mlp", "backend=egen"], "Did you mean 'eigen'"),
        (["network=mlp", "backend=eigen", "threads=0"], "threads is 0"),
        (["network=mlp", "dataset=synthetic", "backend=eigen", "batch_size=100000"], "batch_size is 100000"),
        (["network=mlp", "dataset=synthetc", "backend=eigen"], "Did you mean 'synthetic'"),
        (["network=mlp", "dataset=synthetic", "backend=eigen", "eigen.speed=9"], "eigen.speed"),
        (["network=mlp", "dataset=synthetic", "backend=eigen", "optimizer.momentum=2"], "momentum"),
        (["network=mlp", "dataset=mnist", "dataset_folder=nowhere", "backend=eigen"], "nowhere"),
    ],
)
def test_bad_input_with_real_contenders(
    tmp_path: Path, environment: dict[str, str], words: list[str], message: str
) -> None:
    running = start("run", *words, cwd=tmp_path, env=environment)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 2, err
    assert message in err
    assert out == ""
    assert "Traceback" not in err
    assert not (tmp_path / "results").exists()


@pytest.mark.attempt
def test_a_network_whose_shapes_do_not_fit(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "bad.toml").write_text(
        """
        [[nodes]]
        name = "first"
        kind = "conv2d"
        attributes = { channels = 4, kernel = 99 }
        [[nodes]]
        name = "out"
        kind = "dense"
        inputs = ["first"]
        attributes = { units = 10 }
        [[nodes]]
        name = "loss"
        kind = "softmax_cross_entropy"
        inputs = ["out", "labels"]
        """,
        encoding="utf-8",
    )
    running = start(
        "run", "network=bad.toml", "dataset=synthetic", "backend=null", cwd=tmp_path, env=environment
    )
    _, err = running.communicate(timeout=120)
    assert running.returncode == 2
    assert "first" in err
    assert "Traceback" not in err


@pytest.mark.attempt
@pytest.mark.parametrize("words", [["list"], ["frameworks", "list"], ["list", "results"]])
def test_a_full_disk_behind_standard_output_is_words(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    (tmp_path / "results").mkdir()
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TIMETRIAL, *words], cwd=tmp_path, env=environment, check=False, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "timetrial: standard output takes no more: No space left on device\n"
