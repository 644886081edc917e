"""Whatever a contender does to its launch's folder, the launch has an outcome, and its record can be read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from launching import make_plan, words
from liars import liar_plan
from test_outcomes import PLANTED, processes_of

from timetrial.errors import MeasurementError
from timetrial.launch import run_launch
from timetrial.processes import launch_folder
from timetrial.processes.output import KEPT_BYTES, MOST_BYTES, OutputFile, head, tail
from timetrial.records.model import LaunchRecord
from timetrial.records.store import read_launch
from timetrial.results.results import LaunchFiles, analyzed

pytestmark = pytest.mark.attempt

# What is executed before the answer to a segment; what the reason must say ("": the launch is ok).
DEEDS = [
    ("shutil.rmtree(folder)", "stamps.bin and losses.bin of its launch went away"),
    ("os.unlink(f'{folder}/stamps.bin')", "stamps.bin of its launch went away, or changed"),
    ("os.truncate(f'{folder}/losses.bin', 100)", "losses.bin of its launch went away, or changed"),
    ("open(f'{folder}/stamps.bin', 'ab').write(bytes(8))", "stamps.bin of its launch"),
    ("os.unlink(f'{folder}/stamps.bin'); os.mkfifo(f'{folder}/stamps.bin')", "stamps.bin of its launch"),
    ("os.rename(folder, folder + '-away')", "stamps.bin and losses.bin of its launch went away"),
    ("os.rename(folder, folder + '-away'); open(folder, 'w').close()", "stamps.bin and losses.bin"),
    ("os.rename(folder, folder + '-away'); os.symlink(folder + '-away', folder)", "stamps.bin and losses"),
    ("open(f'{folder}/record.json', 'w').write('{}')", "it left a record.json, which is not its to write"),
    ("os.mkfifo(f'{folder}/record.json')", "it left a record.json"),
    ("os.makedirs(f'{folder}/record.json/a/b')", "it left a record.json"),
    ("os.symlink('/dev/full', f'{folder}/record.json')", "it left a record.json"),
    ("[os.unlink(f'{folder}/{n}') for n in ('stdout.txt', 'stderr.txt', 'job.json')]", ""),
    ("os.unlink(f'{folder}/stdout.txt'); os.mkfifo(f'{folder}/stdout.txt')", ""),
    ("os.unlink(f'{folder}/stderr.txt'); os.mkdir(f'{folder}/stderr.txt')", ""),
    ("shutil.rmtree(f'{folder}/home'); os.symlink('/usr', f'{folder}/home')", ""),
    ("shutil.rmtree(f'{folder}/tmp'); open(f'{folder}/tmp', 'w').close()", ""),
    ("os.mkdir(f'{folder}/home/closed'); os.chmod(f'{folder}/home/closed', 0)", ""),
    ("open(f'{folder}/home/caf'.encode() + bytes([233]), 'w').write('x')", ""),
    ("os.write(1, bytes([255, 0, 27]) * 1000); os.write(2, b'core: ' * 1000)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("deed", "said"), DEEDS)
def test_a_folder_that_its_contender_spoils(tmp_path: Path, deed: str, said: str) -> None:
    folder = tmp_path / "launch"
    record = run_launch(liar_plan(folder, "run", f"import shutil; {deed}; say(event)", 1))
    assert record.outcome == ("crash" if said else "ok"), words(record)
    assert said in (record.reason or "")
    assert read_launch(folder) == record
    analyzed(LaunchFiles(record, folder))
    assert not os.path.lexists(folder / "home")
    assert not os.path.lexists(folder / "tmp")
    assert Path("/usr/bin").is_dir()
    json.loads((folder / "record.json").read_text(encoding="utf-8"))


def test_a_folder_that_goes_while_its_contender_learns(tmp_path: Path) -> None:
    """Nothing of what lay beside the record is believed."""
    settings = {"planted.behavior": "tidy"}
    record = run_launch(
        make_plan(tmp_path / "launch", PLANTED, purpose="learning", settings=settings, batch_size=256)
    )
    assert record.outcome == "crash", words(record)
    assert "of its launch went away" in (record.reason or "")
    assert (record.evaluations, record.files, record.segments) == ([], {}, [])
    assert read_launch(tmp_path / "launch") == record


def test_many_files(tmp_path: Path) -> None:
    code = (
        "[open(f'{folder}/{where}/{n}', 'w').write('x') for n in range(10_000) for where in ('home', 'tmp')]"
    )
    record = run_launch(liar_plan(tmp_path / "launch", "start", f"{code}; say(event)"))
    assert record.outcome == "ok", words(record)
    assert "it wrote 10000 bytes into its home folder" in " ".join(record.warnings)
    assert sorted(os.listdir(tmp_path / "launch")) == [
        "job.json", "losses.bin", "record.json", "stamps.bin", "stderr.txt", "stdout.txt",
    ]  # fmt: skip


def test_output_without_end_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    code = "os.write(1, b'begins '); [os.write(1, b'x' * 65536) for _ in range(4000)]; os.write(1, b' ends')"
    record = run_launch(liar_plan(folder, "start", f"{code}; say(event)"))
    assert record.outcome == "ok", words(record)
    assert (folder / "stdout.txt").stat().st_size < MOST_BYTES + 2 * KEPT_BYTES
    text = (folder / "stdout.txt").read_text()
    assert text.startswith("begins xxx")
    assert text.endswith("xxx ends")
    assert record.stdout.endswith("xxx ends")


def test_the_middle_that_goes_is_counted(tmp_path: Path) -> None:
    output = OutputFile(tmp_path / "out.txt")
    total = 0
    with (tmp_path / "out.txt").open("ab", buffering=0) as file:
        for number in range(5):
            total += file.write(b"%d" % number * (MOST_BYTES // 2 + 1))
            output.trim()
        total += file.write(b"end")
    output.close()
    data = (tmp_path / "out.txt").read_bytes()
    first, _, rest = data.partition(b"\n[")
    left_out, _, last = rest.partition(b" bytes left out]\n")
    assert first == b"0" * KEPT_BYTES
    assert last == b"4" * (KEPT_BYTES - 3) + b"end"
    assert int(left_out) + len(first) + len(last) == total


def test_what_stands_in_place_of_output_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("fifo", "link", "none", "."):
        assert head(tmp_path / name) == tail(tmp_path / name) == ""


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(4)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("at", ["start", "run", "finish"])
def test_who_ends_its_supervisor_ends_its_own_launch(tmp_path: Path, at: str) -> None:
    """And what it has left running by then does not survive."""
    code = f"{DAEMON}\nos.kill(os.getppid(), 9)\ntime.sleep(60)"
    record = run_launch(liar_plan(tmp_path / "launch", at, code))
    assert record.outcome == "crash", words(record)
    assert "somebody ended the supervisor of the contender during" in (record.reason or "")
    assert processes_of(tmp_path) == []
    assert [pid for pid in children() if state(pid) == "Z"] == []
    assert run_launch(liar_plan(tmp_path / "next")).outcome == "ok"


def test_who_stops_its_supervisor_ends_its_own_launch(tmp_path: Path) -> None:
    record = run_launch(liar_plan(tmp_path / "launch", "run", "os.kill(os.getppid(), 19); time.sleep(60)"))
    assert record.outcome == "hang", words(record)
    assert processes_of(tmp_path) == []


def children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.mark.parametrize(("vandal", "outcome"), [("plants a record", "crash"), ("takes the folder", "ok")])
def test_what_happens_while_the_record_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vandal: str, outcome: str
) -> None:
    plan, calls = make_plan(tmp_path / "launch", "null"), 0
    write = launch_folder.write_launch

    def disturbed(place: Path, record: LaunchRecord) -> None:
        nonlocal calls
        calls += 1
        if calls == 1 and vandal == "plants a record":
            (place / "record.json").write_text("{}")
        elif calls == 1:
            shutil.rmtree(place)
            raise MeasurementError("'record.json' cannot be written: No such file or directory.")
        write(place, record)

    monkeypatch.setattr(launch_folder, "write_launch", disturbed)
    assert run_launch(plan).outcome == outcome
    assert calls == 2
    assert read_launch(tmp_path / "launch").outcome in (
        outcome,
        "damaged",
    )  # its samples went with the folder


def test_what_happens_again_and_again_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(place: Path, record: LaunchRecord) -> None:
        raise MeasurementError("no room")

    monkeypatch.setattr(launch_folder, "write_launch", never)
    with pytest.raises(MeasurementError, match="no room"):
        run_launch(make_plan(tmp_path / "launch", "null"))
