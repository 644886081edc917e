"""Settings of a row, taken home: the same case again, from a file and from a command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from timetrial.analysis.taken_home import RowSettings
from timetrial.cases.case import Case
from timetrial.experiment.experiment import Experiment, load_words
from timetrial.records.model import CaseRecord

ASKED: list[dict[str, Any]] = [
    {"threads": 1},
    {"backend": "onednn", "onednn.max_cpu_isa": "avx2", "affinity": "0", "flush_to_zero": "on"},
    {"backend": "cblas", "blas.library": "openblas-scipy", "parallel": "product", "malloc.top_pad": 1048576},
    {"task": "forward", "network": "mlp", "batch_size": 32},
    {"optimizer.name": "adam", "optimizer.learning_rate": 0.003, "optimizer.schedule.name": "cosine"},
]


def recorded(case: Case) -> CaseRecord:
    work = case.workload
    return CaseRecord(
        id=case.id,
        axes=dict(case.axes),
        backend=case.backend,
        network=work.network,
        dataset=work.dataset,
        batch_size=work.batch_size,
        optimizer=dict(work.optimizer),
        task=case.task,
        settings=dict(case.settings),
    )


@pytest.fixture(params=ASKED, ids=lambda asked: ",".join(asked))
def case(request: pytest.FixtureRequest) -> Case:
    keywords = {"network": "lenet5", "dataset": "synthetic", "backend": "eigen", **request.param}
    [only] = Experiment.load(**keywords).cases
    return only.case


def test_the_file_is_the_same_case(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "home.toml"
    file.write_text(RowSettings([], recorded(case)).to_toml(), encoding="utf-8")
    [again] = Experiment.load(str(file)).cases
    assert again.case.id == case.id


def test_the_command_is_the_same_case(case: Case) -> None:
    program, verb, *words = shlex.split(RowSettings([], recorded(case)).command())
    assert (program, verb) == ("timetrial", "run")
    [again] = load_words(words).cases
    assert again.case.id == case.id


def test_variables_are_heard() -> None:
    [case] = Experiment.load(
        network="mlp", dataset="synthetic", backend="cblas", threads=1, **{"blas.core_type": "Prescott"}
    ).cases
    settings = RowSettings([], recorded(case.case))
    script = """
import numpy, timetrial as tt
print({(one.threads, one.kernel) for one in tt.libraries() if one.vendor == "OpenBLAS"})
"""
    environment = {**os.environ, **settings.environment()}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    # PyPI's build has no kernels of its own for Prescott, and takes those of a neighbour.
    assert done.stdout.strip() in ("{(1, 'Prescott')}", "{(1, 'Katmai')}")
    assert settings.beyond_environment == []


def test_variables_of_a_case_are_taken_home(tmp_path: Path) -> None:
    one, _ = Experiment.load(callable="mine:make", **{"environment.A": ["007", "x"]}).cases
    settings = RowSettings([], recorded(one.case))
    assert (settings.environment(), settings.beyond_environment) == ({"A": "007"}, [])
    (tmp_path / "home.toml").write_text(settings.to_toml(), encoding="utf-8")
    [again] = Experiment.load(str(tmp_path / "home.toml")).cases
    assert again.case.settings == one.case.settings


def test_what_no_variable_can_say_is_named() -> None:
    [case] = Experiment.load(
        network="mlp", dataset="synthetic", backend="onednn", affinity="0", **{"onednn.max_cpu_isa": "avx2"}
    ).cases
    settings = RowSettings([], recorded(case.case))
    assert settings.environment() == {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert settings.beyond_environment == ["affinity"]
