"""What a step of one's own compiles is kept: cold in its proof, then warm, for both sides of a race alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import words

import timetrial as tt
from timetrial.records import store
from timetrial.records.model import LaunchRecord
from timetrial.statistics.verdict import Rule

Write = Callable[..., Path]
Launch = Callable[..., LaunchRecord]
# In the place of a library that compiles: keeps something where the variable says, and tells what was there.
COMPILES = """
import os

class Step:
    def __init__(self, name):
        self.folder = os.path.join(os.environ["{variable}"], name)
        self.known = str(os.path.isdir(self.folder))
        self.losses = iter(range(10**9))

    def __call__(self):
        if not os.path.isdir(self.folder):
            os.makedirs(self.folder)
            with open(os.path.join(self.folder, "compiled"), "w") as file:
                file.write("x")
        print("known", self.known, os.environ["{variable}"], flush=True) if self.known else None
        self.known = ""
        return float(next(self.losses))

def make():
    return Step("make")

def other():
    return Step("other")
"""
VARIABLES = ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR"]
COMPILED = """
import torch

def make():
    torch.manual_seed(0)
    layer = torch.nn.Linear(8, 4)
    loss_of = torch.compile(lambda x: layer(x).square().mean())
    x = torch.ones(2, 8)

    def step():
        loss = loss_of(x)
        loss.backward()
        return loss

    return step
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))


def seen(record: LaunchRecord) -> tuple[str, bool]:
    """The state of the cache, and whether the step found there what it had compiled."""
    assert record.outcome == "ok", words(record)
    assert record.compile_cache is not None
    return record.compile_cache.state, record.stdout.split()[1] == "True"


@pytest.mark.parametrize("variable", VARIABLES)
def test_cold_in_the_proof_and_then_warm(launch: Launch, variable: str) -> None:
    text = COMPILES.format(variable=variable)
    assert seen(launch(text, "proof")) == ("cold", False)
    assert seen(launch(text)) == ("warm", True)
    assert seen(launch(text + "# changed\n", "resources")) == ("cold", False)


@pytest.mark.effect("cache")
def test_cold_where_it_is_asked(launch: Launch) -> None:
    text = COMPILES.format(variable="NUMBA_CACHE_DIR")
    launch(text, "proof")
    record = launch(text, cache="cold")
    assert seen(record) == ("cold", False)
    (setting,) = (one for one in record.settings if one.name == "cache")
    assert (setting.effective, setting.status) == ("cold", "applied")


def test_who_compiles_nothing_has_none(launch: Launch) -> None:
    text = "def make():\n    return lambda: None\n"
    launch(text, "proof")
    record = launch(text)
    assert record.compile_cache is not None
    assert record.compile_cache.state == "none"


def test_jax_keeps_however_little_it_is(launch: Launch) -> None:
    text = (
        "import os\ndef make():\n    print(*(os.environ['JAX_PERSISTENT_CACHE_MIN_' + one] for one in "
        "('COMPILE_TIME_SECS', 'ENTRY_SIZE_BYTES')))\n    return lambda: None\n"
    )
    assert launch(text).stdout.split() == ["0", "-1"]


def test_folders_of_the_users_own_win(project: Write, tmp_path: Path, results_folder: Path) -> None:
    own = tmp_path / "mine"
    text = COMPILES.format(variable="TORCHINDUCTOR_CACHE_DIR")
    project("mine.py", text.replace("import os", "import os\nassert 'NUMBA_CACHE_DIR' in os.environ", 1))
    keys: dict[str, Any] = {"launches": 1, "environment": {"TORCHINDUCTOR_CACHE_DIR": str(own)}}
    run = tt.run(callable="mine:make", effort="quick", results=results_folder, quiet=True, **keys)
    assert run.rows[0].outcome == "ok"
    assert (own / "make" / "compiled").is_file()
    assert {one.record.stdout.split()[2] for one in run.rows[0].launches} == {str(own)}


def test_both_sides_of_a_race_are_warm_from_the_first_pair_on(project: Write, results_folder: Path) -> None:
    project("mine.py", COMPILES.format(variable="JAX_COMPILATION_CACHE_DIR"))
    sides = [{"callable": f"mine:{name}", "threads": 1} for name in ("make", "other")]
    rule = Rule(min_effect=0.9, equivalence=0.95)  # early: whatever the load, pairs end it and no budget does
    race = tt.race(*sides, rule=rule, budget="10m", confirm=False, results=results_folder, quiet=True)
    proofs = [store.read_launch(one) for one in race.folder.glob("proof/*")]
    assert [seen(one) for one in proofs] == [("cold", False)] * 2
    first = [store.read_launch(one) for one in race.folder.glob("pairs/000/*") if one.is_dir()]
    assert [seen(one) for one in first] == [("warm", True)] * 2


@pytest.mark.full
def test_torch_compile_compiles_in_the_proof_alone(launch: Launch) -> None:
    pytest.importorskip("torch")
    limits = {"start_timeout_s": 600.0, "progress_timeout_s": 600.0}

    def files(record: LaunchRecord) -> set[str]:
        assert record.outcome == "ok", words(record)
        assert record.compile_cache is not None
        folder = Path(str(record.compile_cache.path))
        return {str(one.relative_to(folder)) for one in folder.rglob("*.so")}

    proof = launch(COMPILED, "proof", limits=limits, threads="1")
    kept = files(proof)
    assert kept
    timed = launch(COMPILED, limits=limits, threads="1")
    assert timed.compile_cache is not None
    assert timed.compile_cache.state == "warm"
    assert files(timed) == kept
