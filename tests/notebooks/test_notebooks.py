"""Notebooks: clean in git, short cells, and a conclusion that follows from the results it was given.

`make notebooks` executes them with a real measurement; here their code runs on scripted results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_LINES = 20


def cells(notebook: Path, kind: str) -> list[str]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == kind]


def faults(content: dict[str, Any]) -> list[str]:
    found = []
    for number, cell in enumerate(content["cells"]):
        if len("".join(cell["source"]).splitlines()) > MOST_LINES:
            found.append(f"cell {number} has more than {MOST_LINES} lines")
        if cell.get("outputs") or cell.get("execution_count"):
            found.append(f"cell {number} has outputs")
    return found


def test_there_is_a_notebook() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["first-look"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_short_cells_without_outputs(notebook: Path) -> None:
    assert faults(json.loads(notebook.read_text(encoding="utf-8"))) == []


def test_the_check_finds_faults() -> None:
    long = {"cell_type": "code", "source": ["x\n"] * 21, "outputs": [], "execution_count": None}
    ran = {"cell_type": "code", "source": ["x"], "outputs": [{"text": "1"}], "execution_count": 1}
    assert len(faults({"cells": [long, ran]})) == 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_begins_with_one_question(notebook: Path) -> None:
    title = cells(notebook, "markdown")[0].splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")


def conclusion(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What first-look says about scripted contenders."""
    pytest.importorskip("IPython")
    experiment = load_words(["network=mlp", *words], load_network=fakes.network)
    results = run_experiment(experiment, folder, quiet=True, engine=FakeEngine().engine())
    monkeypatch.setenv("TIMETRIAL_RESULTS", str(results.path))
    monkeypatch.setattr("IPython.display.display", lambda *things: None)
    names: dict[str, Any] = {}
    for source in cells(FOLDER / "first-look.ipynb", "code"):
        exec(compile(source, "first-look", "exec"), names)
    text: str = names["conclusion"]
    return text


def test_conclusion_names_the_faster(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = conclusion(
        ["backend=slow,fast", "threads=1", "launches=5", "epochs=12"], results_folder, monkeypatch
    )
    assert "The shortest steps that were proven here: **fast** (threads 1)" in text
    assert "0.5 times the reference" in text
    assert "no difference was shown" not in text
    assert "reached 97.2% on the test images" in text
    assert "That it computes this network: passed" in text
    assert "within 0.0 percentage points" in text


def test_conclusion_of_equals_claims_nothing(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = conclusion(["backend=fast,fast", "launches=5", "epochs=1"], results_folder, monkeypatch)
    assert "no difference was shown" in text


def test_conclusion_with_failures(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = conclusion(["backend=fast,absent,crashes", "launches=2", "epochs=1"], results_folder, monkeypatch)
    assert "Fewer than two proven contenders have a time" in text
    assert "**absent** has no time: unavailable, absent needs the module absent" in text
    assert "has no time: crash, the contender crashes." in text
