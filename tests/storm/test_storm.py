"""A storm of faults, drawn from a seed: whatever happens to a launch, it has a record that agrees with
itself, or the run ends in words and is resumed; nothing that had finished is lost, and nothing stays behind.

A thousand in `make test-all`, of which the first hundred are in `make test`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import FAULTS, Soon, processes_of
from launching import SHORT as SHORT_LAUNCH
from launching import make_plan, words
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.errors import MeasurementError
from timetrial.experiment import experiment, runner
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import RunStoppedError, resume_experiment, run_experiment
from timetrial.launch import Limits, run_launch
from timetrial.records import sessions
from timetrial.records.store import read_launch
from timetrial.results.results import LaunchFiles, Results, analyzed

pytestmark = pytest.mark.attempt

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 10))]
FEWEST_SYNCED = 15  # files of a run of CASES, at least
LAUNCHES, WRITES, KILLS = 92, 4, 4  # faults of each kind to a seed
STEP = "import time\ndef make():\n    return lambda: time.sleep(0.0005)\n"
# A job that is a FIFO by now is waited for.
MEASURE = dataclasses.replace(SHORT_LAUNCH, limits=Limits(start_timeout_s=10.0, progress_timeout_s=5.0))
# A run whose launches are short; for this process and for one that is killed.
CASES = ["network=mlp", "dataset=synthetic", "backend=null,eigen", "threads=1", "launches=2"]
SHORT = """
import dataclasses
from timetrial.experiment import experiment, runner
sizes, engine = experiment.sizes, runner.real_engine
def short(*words, **named):
    return dataclasses.replace(sizes(*words, **named), rounds=4, turns_ns=10**8, turns_warmup_ns=10**7)
experiment.sizes = short
runner.real_engine = lambda: dataclasses.replace(engine(), peak_flops=lambda threads: 1e11)
"""
RUN = f"""
import sys
{SHORT}
from timetrial.cli.main import main
main()
"""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((experiment, "sizes"), (runner, "real_engine")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back afterwards
    exec(SHORT, {})


@pytest.fixture
def own_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "stepping.py").write_text(STEP)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "stepping:make"


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not processes_of(folder)
    assert not [path for name in ("home", "tmp") for path in folder.glob(f"*/*/{name}")]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_launch_survives_or_says_why_not(seed: int, tmp_path: Path, own_step: str) -> None:
    rng = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    begun = (0, 0)
    for number in range(LAUNCHES):
        name = rng.choice(list(FAULTS))
        folder = tmp_path / f"{number:03d}" / "launches" / "000"
        backend = "null" if rng.random() < 0.8 else own_step
        with Soon(FAULTS[name], folder, rng, 0.15):
            record = run_launch(make_plan(folder, backend, measure=MEASURE))
        counts[name, record.outcome] += 1
        said = f"{name}: {words(record)}"
        assert record.outcome in ("ok", "crash", "mismatch", "hang"), said
        assert (record.reason is None) == (record.outcome == "ok"), said
        # A fault behind the end of a launch may reach its folders and files: then that is seen.
        for own in ("home", "tmp"):
            assert not os.path.lexists(folder / own) or name == f"{own} is a FIFO", said
        with contextlib.suppress(FileNotFoundError):
            read = read_launch(folder)
            assert read.outcome in (record.outcome, "damaged"), said
            analyzed(LaunchFiles(read, folder))
        if number == 10:
            begun = (_descriptors(), _resident_bytes())
    _nothing_is_left(tmp_path)
    assert _descriptors() == begun[0]
    assert _resident_bytes() - begun[1] < 10 << 20
    assert len(counts) > 20
    assert {outcome for _, outcome in counts} >= {"ok", "crash"}


@contextlib.contextmanager
def _a_disk_that_fails(after: int, number: int) -> Iterator[Callable[[], bool]]:
    """From the `after`-th file that is synced on, none is. Yields whether it came to that."""
    left, usual = after, os.fsync

    def full(fd: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(number, os.strerror(number))
        usual(fd)

    os.fsync = full
    try:
        yield lambda: left < 0
    finally:
        os.fsync = usual


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_fails_ends_a_run_in_words_and_loses_nothing(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for number in range(WRITES):
        results = tmp_path / str(number)
        error = rng.choice([errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
        with _a_disk_that_fails(WRITES * seed + number, error) as failed:
            try:
                run_experiment(load_words(CASES), results, quiet=True)
                ended = ""
            except RunStoppedError as why:  # with the table so far
                ended = str(why) if "does the rest" in repr(why.results) else "without its table"
            except MeasurementError as why:  # before there was any
                ended = str(why)
        assert (os.strerror(error) in ended) == failed(), ended
        assert failed() or WRITES * seed + number >= FEWEST_SYNCED
        _finished_later(results)


@pytest.mark.parametrize("words", [["run", *CASES], ["race", *CASES[:2], "backend=null,null", "threads=1"]])
def test_the_table_so_far_is_printed(tmp_path: Path, words: list[str]) -> None:
    with _a_disk_that_fails(10, errno.ENOSPC) as failed:
        told = CliRunner().invoke(app, [*words, "--results", str(tmp_path)])
        assert failed()
    assert told.exit_code in (1, 4)
    assert "unfinished: " in " ".join(told.stdout.split())
    assert "records: " in told.stdout
    assert "cannot be written: No space left on device" in told.stderr


def _finished_later(results: Path) -> None:
    """What had finished is whole; the rest is done by resuming; then nothing is missing."""
    for folder in results.glob("????????????"):
        if not (folder / "experiment.json").exists():
            continue  # it had not begun
        before = {path: path.read_bytes() for path in folder.rglob("record.json")}
        repr(Results(folder))
        if sessions.state(folder) == "unfinished":
            found = resume_experiment(folder, quiet=True)
        else:
            found = Results(folder)
        assert {row.outcome for row in found.rows} == {"ok"}, repr(found)
        assert all(row.ok >= 2 for row in found.rows), repr(found)
        assert all(path.read_bytes() == content for path, content in before.items())
        assert sessions.state(folder) == "whole"
        assert not [path for name in ("home", "tmp") for path in folder.glob(f"*/*/{name}")]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_at_any_moment_is_finished_later(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for number in range(KILLS):
        results = tmp_path / str(number)
        how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None])
        running = subprocess.Popen(
            [sys.executable, "-c", RUN, "run", *CASES, "--results", str(results)],
            env={**os.environ, "TIMETRIAL_LOCK": str(tmp_path / f"lock{number}")},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not list(results.glob("*/proof/*")) and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 1.5))
        if how is None:  # whoever reads is gone
            assert running.stdout is not None
            running.stdout.close()
            running.stdout = None
        else:
            running.send_signal(how)
        _, err = running.communicate(timeout=120)
        assert "Traceback" not in err, err
        assert running.returncode in (0, -9, 128 + 15, 130, 128 + 1), f"{how}: {err}"
        deadline = time.monotonic() + 10
        while processes_of(results) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not processes_of(results)
        _finished_later(results)
