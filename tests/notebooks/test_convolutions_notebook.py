"""What the notebook about algorithms of convolutions says of scripted profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from test_notebooks import conclusion_of

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import profile_experiment


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["backend=fast", "convolution=im2col,winograd"],
            "holds in part (it matters, one algorithm wins everywhere) with fast: up to 2.0 times, conv1 ",
        ),
        (["backend=fast", "convolution=im2col"], "undecided with fast: no two algorithms lie apart"),
        (["backend=absent", "convolution=im2col"], "undecided, nothing was profiled"),
    ],
)
def test_convolutions(
    words: list[str], said: str, results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="machine: no matplotlib")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    monkeypatch.setattr(FakeEngine, "validate_settings", lambda *_, **__: None)
    monkeypatch.setitem(fakes.STEP_NS, "fast", 100_000)

    def set_pace(plan: Any) -> None:
        fakes.STEP_NS["fast"] = 200_000 if plan.case.settings["convolution"] == "winograd" else 100_000

    experiment = load_words(["network=mlp", "threads=1", *words], load_network=fakes.network)
    engine = FakeEngine(before=set_pace).engine()
    profile = profile_experiment(experiment, results_folder, quiet=True, engine=engine)
    text = conclusion_of("convolutions", "TIMETRIAL_CONVOLUTIONS", profile.path, monkeypatch)
    assert said in text
    assert "Records: `" in text
