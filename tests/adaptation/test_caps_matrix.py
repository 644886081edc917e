"""The matrix of caps: who runs, who adapts and at what price, who fails and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine, FakeHeat
from fakes import network as fake_network

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.model import Ending, LaunchRecord
from timetrial.results.results import Results

MB = 1 << 20
Capped = Callable[..., Results]


@pytest.fixture
def capped(fake: FakeEngine, tmp_path: Path) -> Capped:
    """`slow` holds less in 512MB and takes longer; `fast` runs on as it is; in 64MB both are refused."""

    def factor(plan: Any) -> float:
        is_tight = plan.case.backend == "slow" and plan.case.settings.get("memory.cap") == "512MB"
        return 1.5 if is_tight else 1.0

    def held(plan: Any) -> int:
        return 40 * MB if factor(plan) > 1 else 100 * MB

    fake.factor, fake.held = factor, held
    engine = fake.engine()

    def launch(plan: Any) -> LaunchRecord:
        record = engine.launch(plan)
        if plan.case.settings.get("memory.cap") != "64MB":
            return record
        ending = Ending(cause="refused", boundary="step 3")
        failed = record.model_copy(update={"outcome": "capped", "reason": "no more", "ending": ending})
        (plan.folder / "record.json").write_text(failed.model_dump_json(indent=1), encoding="utf-8")
        return failed

    def together(plans: Any, at_once: int, done: Any, left_s: float | None) -> list[LaunchRecord]:
        records = [launch(plan) for plan in plans]
        for record in records:
            done(record)
        return records

    def run(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=fake_network)
        scripted = replace(
            engine,
            launch=launch,
            together=together,
            heat=lambda plans, course: FakeHeat([launch(plan) for plan in plans]),
            validate_settings=lambda *_: None,
        )
        return run_experiment(experiment, tmp_path, quiet=True, engine=scripted)

    return run


def test_who_adapts_and_who_fails(capped: Capped) -> None:
    words = ("backend=fast,slow", "memory.cap=512MB,none,64MB", 'reference={"memory.cap" = "none"}')
    found = capped(*words).caps
    assert list(found.caps) == ["none", "512MB", "64MB"]
    assert list(found.contenders) == ["fast", "slow"]
    said = [[cell.words if cell else None for cell in line] for line in found.cells]
    assert said[0] == ["runs", "runs", "capped (refused) behind step 3"]
    assert said[1] == ["runs", "adapts: 0.40x memory, 1.50x time", "capped (refused) behind step 3"]
    cell = found.cell("slow", "512MB")
    assert cell is not None
    assert (cell.is_adapted, cell.is_slower) == (True, True)
    plain = found.cell("fast", "512MB")
    assert plain is not None
    assert (plain.is_adapted, plain.is_slower) == (False, False)
    assert "adapts: 0.40x memory, 1.50x time" in repr(found)


def test_without_a_row_without_a_cap_nobody_adapts(capped: Capped) -> None:
    found = capped("backend=slow", "memory.cap=512MB,64MB").caps
    assert [cell.words if cell else None for cell in found.cells[0]] == [
        "runs",
        "capped (refused) behind step 3",
    ]


def test_the_figure_says_the_same(capped: Capped) -> None:
    pytest.importorskip("matplotlib")
    results = capped("backend=fast,slow", "memory.cap=512MB,none,64MB")
    figure = results.plot.caps()
    (panel,) = figure.axes
    written = [text.get_text().replace("\n", " ") for text in panel.texts]
    assert "capped (refused) behind step 3" in written
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["runs", "capped", "adapts"]


def test_results_without_caps_have_no_matrix(capped: Capped) -> None:
    results = capped("backend=fast")
    with pytest.raises(InputError, match=r"No row of these results has a cap\. Span one"):
        _ = results.caps
