"""A callable that makes an adapter goes through the gate; environments of one package stand side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT, make_plan, small_network, words

import timetrial as tt
from timetrial.analysis.steps import steps_of
from timetrial.launch import run_launch
from timetrial.records import store

Write = Callable[..., Path]
PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"


def write_adapter(project: Write, change: str = "") -> None:
    """The NumPy framework of the tests as mine.py, with what it imports beside it."""
    for part in PLANTED.glob("*.py"):
        if part.name != "adapter.py":
            project(part.name, part.read_text())
    project("mine.py", f"{(PLANTED / 'adapter.py').read_text()}\n\n{change}\n")


WRONG = "right = Adapter.step\nAdapter.step = lambda self: 1.001 * right(self)"


@pytest.mark.parametrize(("change", "status"), [("", "passed"), (WRONG, "failed")])
def test_an_adapter_is_proven_or_not(project: Write, tmp_path: Path, change: str, status: str) -> None:
    write_adapter(project, change)
    network = small_network(tmp_path)
    proof = run_launch(make_plan(tmp_path / "proof", "mine:Adapter", network=network, purpose="proof"))
    assert proof.parity is not None, words(proof)
    assert proof.parity.status == status, words(proof)
    assert [phase.name for phase in proof.phases] == ["exec", "start", "import", "build"]
    assert proof.facts["callable.file"].endswith("mine.py")
    if status == "passed":
        timed = run_launch(
            make_plan(tmp_path / "timed", "mine:Adapter", network=network, proof=proof.parity, measure=SHORT)
        )
        assert timed.outcome == "ok", words(timed)


def test_an_adapter_needs_a_network(project: Write, results_folder: Path) -> None:
    write_adapter(project)
    row = tt.run(callable="mine:Adapter", launches=1, results=results_folder, quiet=True).rows[0]
    assert row.outcome == "unavailable"
    assert "mine:Adapter made an adapter, which builds a network; name one: network=lenet5" in str(row.reason)


def test_two_environments_side_by_side(
    project: Write, environment: Write, results_folder: Path, tmp_path: Path
) -> None:
    """The package of each, although a source folder of it lies in the working directory."""
    before, after = environment("before", "1.5"), environment("after", "2.5")
    project("mypkg/__init__.py", "raise SystemExit('the source folder was imported')")
    results = tt.run(
        callable="mypkg:make_step",
        python=[str(before), str(after)],
        launches=1,
        results=results_folder,
        quiet=True,
    )
    assert [row.outcome for row in results.rows] == ["ok", "ok"]
    for row, python, version in zip(results.rows, (before, after), ("1.5", "2.5"), strict=True):
        [speed] = [one for one in row.launches if one.record.purpose == "speed"]
        assert speed.record.backend["version"] == version
        assert f"mypkg {version}" in speed.record.facts["callable.packages"]
        assert speed.record.facts["callable.file"].startswith(str(python.parents[1]))
        folder = results.path / speed.folder if not Path(speed.folder).is_absolute() else Path(speed.folder)
        losses = steps_of(speed.record, store.read_stamps(folder), store.read_losses(folder)).loss
        assert set(losses) == {float(version)}
        [setting] = [one for one in row.settings if one.name not in ("flush_to_zero", "malloc")]
        assert (setting.name, setting.effective) == ("python", str(python))


def test_the_running_interpreter_imports_what_its_parent_imports(
    project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its order, and from the working directory last."""
    project("mine.py", "def make():\n    return lambda: None\n")
    first = tmp_path / "first"
    first.mkdir()
    (first / "mine.py").write_text("def make():\n    return lambda: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(first), *sys.path])
    record = run_launch(make_plan(tmp_path / "launch", "mine:make", purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert record.facts["callable.file"] == str(first / "mine.py")


def run_words(*given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "timetrial.cli.main", "run", *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)


SUMMING = """
def make(n=100):
    def step():
        return float(sum(range(n)))
    step.samples = 5
    return step
"""


def test_the_command_line(project: Write, results_folder: Path) -> None:
    project("mine.py", SUMMING)
    given = ["callable=mine:make", "launches=1", "effort=quick", "--results", str(results_folder)]
    done = run_words(*given, "--json")
    assert done.returncode == 0, done.stderr
    [case] = json.loads(done.stdout)["cases"]
    assert case["axes"]["backend"] == "mine:make"
    assert case["axes"]["network"] == "none"
    assert case["parity"]["status"] == "unproven"
    assert case["samples_per_s"] == pytest.approx(5e9 / case["step_time_ns"]["estimate"])
    # There is no recipe to learn by: it is timed all the same, and the header names what there is.
    done = run_words(*given, "train.epochs=2")
    assert done.returncode == 0, done.stderr
    assert "not proven: mine:make" in " ".join(done.stdout.split())
    assert "none" not in done.stdout.lower()
    assert "accuracy" not in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["callable=mine:maker"], "Did you mean 'make'?"),
        (["callable=mine"], "expected the module and the function"),
        (["callable=mine:make", "python=no/python"], "there is no such interpreter"),
    ],
)
def test_bad_input_starts_nothing(project: Write, results_folder: Path, given: list[str], said: str) -> None:
    project("mine.py", "def make():\n    return lambda: None\n")
    done = run_words(*given, "--results", str(results_folder))
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not results_folder.exists()


def test_a_race_of_two_functions_and_of_a_stored_row(project: Write, results_folder: Path) -> None:
    """What a side keeps of a stored case makes the same case again; that its allocator kept its memory,
    too."""
    from timetrial.experiment.allocator import with_settled_allocator
    from timetrial.races.side import experiment_of, side_of

    project("mine.py", "def make():\n    return lambda: None\n")
    results = tt.run(callable="mine:make", launches=1, results=results_folder, quiet=True)
    assert (results.experiment.workloads, results.experiment.peak_flops) == ([], {})
    again: Any = with_settled_allocator(experiment_of([side_of(results), side_of("mine:make")], {}, 1)).cases
    assert [one.case.content_id for one in again] == [results.rows[0].case.id] * 2
