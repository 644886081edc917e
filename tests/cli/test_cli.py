from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine
from typer.testing import CliRunner, Result

from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.experiment.doctor import COUNTERS
from timetrial.noise import poor_gain, two_threads_over_one


@pytest.fixture
def call(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `timetrial WORDS` in an empty folder, with scripted contenders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("timetrial.experiment.runner.real_engine", fake.engine)
    monkeypatch.setattr("timetrial.experiment.engine.real_engine", fake.engine)
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, list(words))

    return call


def test_json_is_one_object_and_nothing_else(call: Any) -> None:
    done = call("run", "network=mlp", "backend=fast,slow", "threads=1,2", "launches=2", "--json")
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["cases"]) == 4
    assert done.stderr == ""


def test_the_table_is_printed(call: Any) -> None:
    done = call("run", "network=mlp", "backend=fast,slow", "launches=2")
    assert done.exit_code == 0
    assert "reference" in done.stdout
    assert "again: timetrial run network=mlp backend=fast,slow launches=2 seed=1" in done.stdout


@pytest.mark.parametrize(
    ("backends", "code"),
    [("fast,absent", 0), ("absent", 0), ("fast,crashes", 1), ("wrong", 1), ("mismatched", 1)],
)
def test_exit_codes(call: Any, backends: str, code: int) -> None:
    assert call("run", "network=mlp", f"backend={backends}", "launches=2").exit_code == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "Nothing to run"),
        (("run", "first-lok"), "Did you mean 'first-look'"),
        (("run", "network=mlp", "backend=fast", "thread=2"), "Did you mean 'threads'"),
        (("run", "network=mlp", "backend=fast", "threads=3"), "this process may use 2 CPUs"),
        (("run", "network=mlp", "backend=fast", "batch_size=0"), "batch_size is 0"),
        (("run", "network=mlp", "backend=fast", "batch_size=9999"), "there are 1437 images"),
        (("show", "nothing"), "There are no records at 'nothing'"),
        (("list", "backend"), "Did you mean 'backends'"),
        (("run", "--jsn"), "No such option"),
    ],
)
def test_bad_input_is_one_message_on_stderr(call: Any, words: tuple[str, ...], message: str) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_profile(call: Any, tmp_path: Path) -> None:
    done = call("profile", "network=mlp", "backend=fast,other,absent", "--figure", "a.png")
    assert done.exit_code == 0
    assert "plain step" in done.stdout
    assert "other does not time its layers" in done.stdout
    assert "again: timetrial profile network=mlp" in done.stdout
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    (folder,) = Path("results").iterdir()
    shown = call("show", folder.name)
    assert "plain step" in shown.stdout
    assert "passed against reference" in shown.stdout
    document = json.loads(call("show", folder.name, "--json").stdout)
    assert document["cases"][0]["layers"][0]["node"] == "conv1"


def test_profile_json_is_one_object_and_nothing_else(call: Any) -> None:
    done = call("profile", "network=mlp", "backend=fast,slow", "threads=1,2", "--json")
    assert done.exit_code == 0
    assert [case["profiled_steps"] for case in json.loads(done.stdout)["cases"]] == [3] * 4
    assert done.stderr == ""


@pytest.mark.parametrize(("backends", "code"), [("fast,other", 0), ("fast,wrong", 1), ("crashes", 1)])
def test_exit_codes_of_profile(call: Any, backends: str, code: int) -> None:
    assert call("profile", "network=mlp", f"backend={backends}").exit_code == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Nothing to run"),
        (("network=mlp", "backend=fst"), "There is no backend 'fst'"),
        (("network=mlp", "backend=fast", "task=forward"), "only a train step can be profiled"),
        (("network=mlp", "backend=fast", "task=train,gradient"), "task is 'gradient'"),
        (("network=mlp", "backend=fast", "--figure", "a.doc"), "--figure is 'a.doc'"),
    ],
)
def test_bad_input_of_profile(call: Any, fake: FakeEngine, words: tuple[str, ...], message: str) -> None:
    done = call("profile", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert not fake.log, "nothing was started"


def test_profile_interrupted(call: Any, fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 3:
            raise KeyboardInterrupt

    fake.before = interrupt
    done = call("profile", "network=mlp", "backend=fast,slow", "--json")
    assert done.exit_code == 130
    assert sorted(case["profiled_steps"] for case in json.loads(done.stdout)["cases"]) == [0, 3]


def test_interrupted(call: Any, fake: FakeEngine) -> None:
    def interrupt(plan: Any) -> None:
        if len(fake.log) == 3:
            raise KeyboardInterrupt

    fake.before = interrupt
    done = call("run", "network=mlp", "backend=fast,slow", "launches=3", "--json")
    assert done.exit_code == 130
    outcomes = [case["outcome"] for case in json.loads(done.stdout)["cases"]]
    assert sorted(outcomes, key=str) == [None, "ok"]


def test_a_read_only_results_folder(call: Any, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file", encoding="utf-8")
    done = call("run", "network=mlp", "backend=fast")
    assert done.exit_code == 2
    assert "Records cannot be kept in 'results'" in done.stderr


def test_dry_run_measures_nothing(call: Any, fake: FakeEngine, tmp_path: Path) -> None:
    done = call("run", "network=mlp", "backend=fast,absent", "launches=5", "epochs=2", "--dry-run")
    assert done.exit_code == 0
    assert "2 cases, 9 launches (1 proof, 5 speed, 3 learning), about" in done.stdout
    assert "known to" not in done.stdout, "so many launches were asked for, no precision"
    assert "Differences of 3.0 % and more will show" in done.stdout
    assert "unavailable: absent" in done.stdout
    words = call("run", "network=mlp", "backend=fast,slow,other", "threads=1,2", "--dry-run").stdout
    precision = r"at most 8 of each case \(about .* in all\), until half of the ratios are known to ±3 %\."
    assert re.search(precision, words), words
    words = call("run", "network=mlp", "backend=fast,absent", "isolated=true", "--dry-run").stdout
    assert "Each speed launch goes on until its median is known to ±3 %, for at most 1.5 s." in words
    assert not fake.log
    assert not (tmp_path / "results").exists()
    words = call("run", "network=mlp", "backend=fast,absent", "batch_size=16,32", "--dry-run").stdout
    assert words.count("unavailable: absent: ") == 1
    facts = json.loads(call("run", "network=mlp", "backend=fast", "launches=1", "--dry-run", "--json").stdout)
    assert facts["launches"] == 2
    assert "further_seconds" not in facts
    assert facts["visible_difference"] is None
    keys = ("network=mlp", "backend=fast,slow,other", "threads=1,2", "effort=normal")
    words = call("run", *keys, "--dry-run").stdout
    assert "(3 proof, 36 speed, 0 learning), about" in words
    assert re.search(r"at most 20 of each case \(.* in all\), until .* known to ±1 %", words)


def test_show_takes_an_id(call: Any) -> None:
    call("run", "network=mlp", "backend=fast,slow", "threads=1", "launches=2")
    (folder,) = Path("results").iterdir()
    done = call("show", folder.name)
    assert done.exit_code == 0
    assert "passed against reference" in done.stdout
    assert json.loads(call("show", folder.name, "--json").stdout)["experiment"] == "command-line"


def test_list_names_everything(call: Any) -> None:
    done = call("list", "--json")
    assert done.exit_code == 0
    lists = json.loads(done.stdout)
    assert list(lists) == ["experiments", "backends", "networks", "datasets", "libraries", "settings"]
    assert "first-look" in lists["experiments"]
    assert {"null", "reference", "eigen", "pytorch"} <= set(lists["backends"])
    assert "digits28" in lists["datasets"]
    assert all(words for entries in lists.values() for words in entries.values())
    assert "threads" in lists["settings"]


def test_a_broken_backend_breaks_no_list(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(case: Any, **options: Any) -> Any:
        raise InputError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr("timetrial.contenders.resolve", resolve)
    done = call("list", "backends", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["backends"]["eigen"].startswith("broken: libgomp.so.1")


def test_doctor(call: Any) -> None:
    done = call("doctor", "--json")
    assert done.exit_code == 0
    diagnosis = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in diagnosis["checks"]}
    assert states["backend eigen"] == "ready"
    # Counters that the machine does not have come with no command: their words say what would change it.
    missing = [one for one in diagnosis["checks"] if one["state"] == "missing" and one["gain"] != COUNTERS]
    assert all(check["cure"] for check in missing)
    assert 0 < diagnosis["clock_ns"] < 10_000
    assert diagnosis["noise"] == []  # it was not asked for
    text = call("doctor", "--noise").stdout
    assert "GFLOP/s" in text
    assert "address randomization" in text
    if len(os.sched_getaffinity(0)) > 1:
        assert diagnosis["two_threads"] > 0
        assert re.search(r"two threads do \d\.\d\d times the work of one", text)


@pytest.mark.parametrize(("two", "advised"), [(2.0, False), (1.9, False), (1.1, True)])
def test_doctor_says_what_two_threads_do(two: float, advised: bool) -> None:
    """Each is disturbed once: the best of its turns counts."""
    disturbed = iter([(1, 0.5), (2, 0.9), (1, 1.0), (2, 0.7), (1, 0.9), (2, 1.0), (1, 0.9), (2, 0.2)])

    def measure(threads: int, seconds: float) -> Any:
        expected, share = next(disturbed)
        assert threads == expected
        return SimpleNamespace(flops_per_s=1e9 * share * (two if threads == 2 else 1.0))

    assert two_threads_over_one(measure) == pytest.approx(two)
    assert any("two threads do" in words for words in poor_gain(two)) is advised
    assert poor_gain(None) == []


def test_importing_is_quick_and_public_names_work() -> None:
    script = (
        "import sys, timetrial as tt\n"
        "heavy = {'numpy', 'pydantic', 'scipy', 'pandas', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert all(getattr(tt, name) for name in tt.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_table_of_contents_loads_no_more_than_it_needs() -> None:
    script = (
        "import sys, timetrial.cli.main\n"
        "heavy = {'numpy', 'pydantic', 'scipy', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_version_and_help(call: Any) -> None:
    assert call("--version").stdout.strip()
    assert "doctor" in call("--help").stdout


def test_what_was_measured_is_listed_and_shown_by_the_name_last(call: Any, tmp_path: Path) -> None:
    assert "There is no folder 'results'" in call("list", "results").stderr
    call("run", "network=mlp", "backend=fast,slow", "launches=2")
    done = call("list", "results")
    assert done.exit_code == 0
    assert "run network=mlp backend=fast,slow launches=2 seed=1" in done.stdout
    [entry] = json.loads(call("list", "results", "--json").stdout)
    assert entry["found"] == "2 cases"
    assert call("show", "last").stdout.splitlines()[0] == call("show", entry["id"]).stdout.splitlines()[0]
    for number in range(20):
        (tmp_path / "results" / f"copy{number}").mkdir()
        (tmp_path / "results" / f"copy{number}" / "experiment.json").write_text("{")
    assert "and 1 older: timetrial list results --all" in call("list", "results").stdout
    assert call("list", "results", "--all").stdout.count("copy") == 2 * 20
