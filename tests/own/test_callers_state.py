"""What holds in the caller's process and not in a contender: carried where it was asked for, else named."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine
from launching import words

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.contenders import resolve
from timetrial.contenders.functions import word_of
from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment
from timetrial.in_process import caller
from timetrial.in_process.settings import held, settings
from timetrial.processes.lock import MeasurementLock
from timetrial.races import run_race
from timetrial.records.model import LaunchRecord, Library
from timetrial.report.race import header
from timetrial.runtime.loaded import state_of

Launch = Callable[..., LaunchRecord]
Write = Callable[..., Path]
NOTHING = Workload(NO_NETWORK, NO_NETWORK, None, {})
PLAIN = "def make():\n    return lambda: 1.0\n"


def test_a_variable_of_one_case_is_its_setting(launch: Launch) -> None:
    text = "import os\nMODE = float(os.environ['MODE'])\ndef make():\n    return lambda: MODE\n"
    record = launch(text, **{"environment.MODE": "2.5"})
    assert record.outcome == "ok", words(record)
    [setting] = [one for one in record.settings if one.name == "environment.MODE"]
    assert (setting.asked, setting.effective, setting.status) == ("2.5", "2.5", "applied")
    assert record.environment["MODE"] == "2.5"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("os.environ['MY_DATA']", "environment.MY_DATA=VALUE gives it: contenders have none of the caller's"),
        ("open(os.path.expanduser('~/data/x'))", "; ~ is a folder of the launch's own: give the whole path"),
        ("{}['MY_DATA']", ""),
        ("open('/nowhere/x')", ""),
    ],
)
def test_what_the_caller_has_and_a_contender_lacks_gets_a_hint(launch: Launch, line: str, hint: str) -> None:
    record = launch(f"import os\ndef make():\n    {line}\n", "proof")
    assert record.outcome == "crash"
    assert hint in str(record.reason)
    assert bool(hint) == ("environment." in str(record.reason))


@pytest.mark.effect("setup")
def test_setup_runs_before_the_steps_module_is_imported(launch: Launch, project: Write) -> None:
    project("before.py", "import os\ndef prepare():\n    os.environ['READY'] = '3'\n")
    text = "import os\nREADY = float(os.environ['READY'])\ndef make():\n    return lambda: READY\n"
    record = launch(text, setup="before:prepare")
    assert record.outcome == "ok", words(record)
    [setting] = [one for one in record.settings if one.name == "setup"]
    assert (setting.effective, setting.status) == ("before:prepare", "applied")


def test_setup_may_be_a_function_of_a_session(launch: Launch) -> None:
    def prepare() -> None:
        os.environ["READY"] = "3"

    record = launch("import os\nos.environ['READY']\n" + PLAIN, "proof", setup=word_of(prepare))
    assert record.outcome == "ok", words(record)
    asked = Experiment.load(callable=prepare, setup=prepare).cases[0].case
    assert asked.settings["setup"] == asked.backend


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("before:absent", "setup 'before:absent': the module 'before' has no 'absent'"),
        ("nowhere:prepare", "setup 'nowhere:prepare': there is no module 'nowhere'"),
        ("before.py", "setup is 'before.py'; expected a function that is called first"),
    ],
)
def test_a_setup_that_is_none_is_refused(project: Write, setup: str, said: str) -> None:
    project("mine.py", PLAIN)
    project("before.py", "def prepare(): ...\n")
    with pytest.raises(InputError, match=said):
        resolve(Case("mine:make", NOTHING, settings={"setup": setup}))


def test_a_setup_that_fails_is_where_it_failed(launch: Launch, project: Write) -> None:
    project("before.py", "def prepare():\n    raise ValueError('not here')\n")
    record = launch(PLAIN, "proof", setup="before:prepare")
    assert record.reason == "ValueError: not here (before.py:2) (setup)"


def test_a_program_that_measures_as_it_is_imported_is_told_of_its_guard(launch: Launch) -> None:
    text = "from timetrial.processes.lock import MeasurementLock\nwith MeasurementLock():\n    pass\n"
    record = launch(text + PLAIN, "proof")
    assert record.outcome == "crash"
    assert 'Put the call there (tt.race, tt.run ...) below `if __name__ == "__main__":`' in str(record.reason)


def test_who_is_no_contender_may_measure(tmp_path: Path) -> None:
    with MeasurementLock(tmp_path / "lock"):
        pass


def test_what_blocks_hold_is_of_their_thread_and_while_they_last() -> None:
    seen: list[dict[str, Any]] = []
    with settings(threads=1, affinity=str(min(os.sched_getaffinity(0)))):
        with settings(flush_to_zero=False):
            assert held() == {
                "threads": 1, "affinity": str(min(os.sched_getaffinity(0))), "flush_to_zero": "off",
            }  # fmt: skip
        assert "flush_to_zero" not in held()
        thread = threading.Thread(target=lambda: seen.append(held()))
        thread.start()
        thread.join()
    assert (held(), seen) == ({}, [{}])


def torch_in(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(get_default_dtype=lambda: f"torch.{dtype}"))


def proof(**fields: Any) -> LaunchRecord:
    said = {"duration_s": 1.0, "seed": 1, "block": 0, "position": 0, "started_at": ""}
    return LaunchRecord(id="1", case="1", purpose="proof", outcome="ok", **{**said, **fields})


OWN = Case("mine:make", NOTHING)
TORCH = {"callable.packages": "numpy 2.0, torch 2.5"}
CALL = "torch.set_default_dtype(torch.float64)"


def test_what_a_library_keeps_is_named_with_what_carries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "VARIABLES", ())
    torch_in(monkeypatch, "float64")
    assert state_of() == {"torch.get_default_dtype": CALL}
    [text] = caller.not_carried(OWN, proof(facts=TORCH))
    assert text == (
        f"{CALL} holds here, and not in contenders, which start afresh: setup=, which names a function that "
        "calls it, carries it"
    )
    assert caller.not_carried(OWN, proof(facts={**TORCH, "torch.get_default_dtype": CALL})) == []
    assert caller.not_carried(OWN, proof(facts={"callable.packages": "numpy 2.0"})) == []
    assert caller.not_carried(Case("eigen", NOTHING), proof(facts=TORCH)) == []
    torch_in(monkeypatch, "float32")
    assert caller.not_carried(OWN, proof(facts=TORCH)) == []


def test_another_number_of_threads_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = len(os.sched_getaffinity(0))
    for name in caller.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    torch_in(monkeypatch, "float32")
    fact = SimpleNamespace(path="/lib/libgomp.so", threads=cpus + 1, vendor="GNU")
    monkeypatch.setattr(
        caller, "Libraries", lambda: SimpleNamespace(loaded=lambda: [SimpleNamespace(facts=lambda: fact)])
    )
    there = proof(libraries=[Library(path=fact.path, kind="openmp", threads=cpus)])
    [text] = caller.not_carried(OWN, there)
    assert text.startswith(f"threads of GNU (libgomp.so) are {cpus + 1} here, and not in contenders")
    assert text.endswith(f"threads={cpus + 1} carries it")
    assert caller.not_carried(Case("mine:make", NOTHING, settings={"threads": "1"}), there) == []
    assert caller.not_carried(OWN, proof()) == []
    fact.threads = cpus  # a step that sets its own
    assert caller.not_carried(OWN, proof(libraries=[Library(path=fact.path, kind="openmp", threads=1)])) == []
    monkeypatch.setenv("OMP_NUM_THREADS", str(cpus + 1))
    [text] = caller.not_carried(OWN, there)
    assert text.startswith(f"OMP_NUM_THREADS={cpus + 1} is set here, and not in contenders")
    assert f"environment.OMP_NUM_THREADS={cpus + 1} carries it" in text
    assert caller.not_carried(OWN, proof(environment={"OMP_NUM_THREADS": str(cpus + 1)})) == []


@pytest.fixture
def raced(fake: FakeEngine, tmp_path: Path) -> Callable[..., Any]:
    def race(metric: Any = "step_time", **keys: Any) -> Any:
        experiment = Experiment.load(callable=["mine:make", "mine:other"], **keys)
        return run_race(experiment, tmp_path / "results", metric=metric, quiet=True, engine=fake.engine())

    return race


def test_a_race_says_once_what_is_not_carried(
    raced: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    assert repr(raced()).count("OMP_NUM_THREADS=77 is set here") == 1
    with settings(threads=1):
        found = raced()
    assert "threads=1, as tt.settings holds" in header(found)
    assert "OMP_NUM_THREADS" not in repr(found)
    assert repr(found).count("as tt.settings holds") == 1


def test_samples_per_second_of_steps_that_do_not_say_theirs_is_refused_behind_the_proofs(
    raced: Callable[..., Any], fake: FakeEngine
) -> None:
    found = raced("samples_per_s")
    assert found.exit_code == 4
    assert "mine:make is without samples per second: how many samples a step has is not known" in repr(found)
    assert [plan.purpose for plan in fake.log] == ["proof", "proof"]
    assert raced("samples_per_s", batch_size=8).verdict is not None
