"""Notebooks: short cells, and a conclusion that follows from the results it was given.

`make notebooks` executes them with a real measurement; here their code runs on scripted results. Whether the
outputs in git are of this code is asked by `make lint` (tools/notebooks.py, tests/tools/test_outputs.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import profile_experiment, run_experiment

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
    return found


def test_there_is_a_notebook() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == [
        "blas-in-frameworks",
        "blas",
        "convolutions",
        "first-look",
        "first-race",
        "frameworks",
        "networks",
        "sequences",
        "what-fits",
        "where-time-goes",
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_short_cells(notebook: Path) -> None:
    assert faults(json.loads(notebook.read_text(encoding="utf-8"))) == []


def test_the_check_finds_faults() -> None:
    long = {"cell_type": "code", "source": ["x\n"] * 21, "outputs": [], "execution_count": None}
    short = {"cell_type": "code", "source": ["x\n"] * 20, "outputs": [], "execution_count": None}
    assert faults({"cells": [short, long]}) == ["cell 1 has more than 20 lines"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_begins_with_one_question(notebook: Path) -> None:
    title = cells(notebook, "markdown")[0].splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")


def conclusion_of(notebook: str, variable: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the notebook says about the records of a folder."""
    pytest.importorskip("IPython")
    monkeypatch.setenv(variable, str(folder))
    monkeypatch.setattr("IPython.display.display", lambda *things: None)
    names: dict[str, Any] = {}
    for source in cells(FOLDER / f"{notebook}.ipynb", "code"):
        exec(compile(source, notebook, "exec"), names)
    text: str = names["conclusion"]
    return text


def conclusion(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What first-look says about scripted contenders."""
    experiment = load_words(["network=mlp", *words], load_network=fakes.network)
    results = run_experiment(experiment, folder, quiet=True, engine=FakeEngine().engine())
    return conclusion_of("first-look", "TIMETRIAL_RESULTS", results.path, monkeypatch)


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


@pytest.mark.parametrize(
    ("backends", "said"),
    [
        (
            "fast,slow,other",
            [
                "**fast**: the layers add up to 0.1 ms, a plain step takes 0.098 ms.",
                "Products take 89% of it, at 22% of the peak.",
                "Most is to be gained in conv1: up to 0.042 ms",
                "**slow**: the layers add up to 0.2 ms",
                "**other** has no profile: unavailable, other does not time its layers.",
            ],
        ),
        ("absent", ["**absent** has no profile: unavailable, absent needs the module absent"]),
    ],
)
def test_where_time_goes(
    backends: str, said: list[str], results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_words(["network=mlp", f"backend={backends}", "threads=1"], load_network=fakes.network)
    profile = profile_experiment(experiment, results_folder, quiet=True, engine=FakeEngine().engine())
    text = conclusion_of("where-time-goes", "TIMETRIAL_PROFILE", profile.path, monkeypatch)
    for words in said:
        assert words in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["backend=slow,fast"],
            r"The second version is faster: -\d+\.\d % .* \[-.*\], on 4 pairs",
        ),
        (
            ["backend=fast,slow"],
            r"The second version is slower: \+\d+\.\d % .* \[\+.*\], on 4 pairs",
        ),
        (["backend=fast,fast"], "The two are the same"),
        (["backend=fast,absent"], "This race could not be judged: unavailable"),
    ],
)
def test_first_race(
    words: list[str], said: str, raced: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.results.race.Race.plot", lambda race: None)
    race = raced(*words, "threads=1")
    assert re.search(said, conclusion_of("first-race", "TIMETRIAL_RACE", race.folder, monkeypatch))


def test_frameworks(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*words: str) -> Path:
        experiment = load_words(
            ["network=lenet5", "launches=3", "epochs=1", *words], load_network=fakes.network
        )
        return run_experiment(experiment, results_folder, quiet=True, engine=FakeEngine().engine()).path

    monkeypatch.setenv(
        "TIMETRIAL_OVERHEAD", str(measured("backend=fast,slow", "batch_size=16,64,256", "threads=1"))
    )
    folder = measured("backend=fast,slow,wrong,absent", "threads=1,2", "task=train")
    text = conclusion_of("frameworks", "TIMETRIAL_FRAMEWORKS", folder, monkeypatch)
    assert "2 of 4 contenders have a proven time. The shortest step: **fast**" in text
    assert "the longest is slow, 2.0 times that" in text
    assert "**wrong** is wrong:" in text
    assert "**absent** is unavailable: absent needs the module absent" in text
