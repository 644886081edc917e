"""What the notebook about caps on memory says of scripted outcomes: a claim holds, is refuted, or nobody
measured what it speaks of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from test_notebooks import conclusion_of

from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records.model import Ending, LaunchRecord

MB = 1 << 20
CAPS = "memory.cap=none,1GB,64MB"
FIT = {
    "axes": {"backend": "pytorch"}, "outcome": "ok", "reason": None, "smallest_bytes": 300 * MB,
    "short_bytes": 290 * MB, "below": "capped", "cause": "refused", "boundary": "build",
    "held_bytes": 200 * MB, "launches": 9,
}  # fmt: skip
Fails = Callable[[str, str], str | None]  # backend, cap -> outcome


@pytest.fixture
def said(fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Fails], str]:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="machine: no matplotlib")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    known = ("pytorch", "tensorflow", "mxnet", "paddle", "singa")
    for name in known:
        monkeypatch.setitem(fakes.STEP_NS, name, 100_000)
    monkeypatch.setattr(fakes, "BACKENDS", (*fakes.BACKENDS, *known))
    fake.held = lambda plan: (300 if plan.case.backend == "tensorflow" else 100) * MB
    engine = fake.engine()
    (tmp_path / "fits.json").write_text(json.dumps({"precision": 0.02, "fits": [FIT]}))
    monkeypatch.setenv("TIMETRIAL_FITS", str(tmp_path))

    def run(backends: str, fails: Fails) -> str:
        def launch(plan: Any) -> LaunchRecord:
            record = engine.launch(plan)
            outcome = fails(plan.case.backend, plan.case.settings["memory.cap"])
            if outcome is None:
                return record
            ending = Ending(cause="refused", boundary="build")
            failed = record.model_copy(update={"outcome": outcome, "reason": "no more", "ending": ending})
            (plan.folder / "record.json").write_text(failed.model_dump_json(indent=1), encoding="utf-8")
            return failed

        def together(plans: Any, at_once: int, done: Any, left_s: float | None) -> list[LaunchRecord]:
            records = [launch(plan) for plan in plans]
            for record in records:
                done(record)
            return records

        experiment = load_words(
            ["network=mlp", f"backend={backends}", CAPS, "launches=1", "isolated=true"],
            load_network=fakes.network,
        )
        scripted = replace(engine, launch=launch, together=together, validate_settings=lambda *_: None)
        results = run_experiment(experiment, tmp_path / "results", quiet=True, engine=scripted)
        return conclusion_of("what-fits", "TIMETRIAL_WHAT_FITS", results.path, monkeypatch)

    return run


def test_claims_that_hold_or_are_refuted(said: Callable[[str, Fails], str]) -> None:
    def fails(backend: str, cap: str) -> str | None:
        if backend == "singa":
            return "crash" if cap == "64MB" else None
        return "capped" if cap == "64MB" and backend in ("mxnet", "paddle") else None

    text = said("pytorch,tensorflow,mxnet,paddle,singa", fails)
    assert "SINGA ignores available resources and crashes**: holds under a cap only: none runs, " in text
    assert "64MB crash (refused)" in text
    assert "do not adapt**: holds: mxnet: none runs, 1GB runs, 64MB capped (refused); paddle: " in text
    assert "1 of the 3 others fail too (singa)" in text
    assert "P4-3, PyTorch completes everything**: holds: none runs, 1GB runs, 64MB runs." in text
    assert "refuted: tensorflow holds 300 MB, pytorch 100 MB, 3.00 times" in text
    assert "undecided: pytorch and tensorflow were not both looked at along their time" in text
    assert "Records: `" in text


def test_who_fails_without_a_cap_crashes(said: Callable[[str, Fails], str]) -> None:
    text = said("pytorch,singa", lambda backend, cap: "crash" if backend == "singa" else None)
    assert "and crashes**: holds: none crash (refused), " in text
    assert "undecided: mxnet and paddle were not measured" in text
    assert "undecided: tensorflow was not measured without a cap" in text


def test_who_never_fails_does_not_crash(said: Callable[[str, Fails], str]) -> None:
    text = said("singa,mxnet", lambda backend, cap: None)
    assert "and crashes**: refuted: none runs, 1GB runs, 64MB runs" in text
    assert "do not adapt**: refuted: mxnet: none runs" in text
    assert "undecided: pytorch was not measured" in text
