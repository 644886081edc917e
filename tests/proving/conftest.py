"""Proofs that are kept in a cache folder of the test's own, of contenders that only pretend to compute."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.experiment.engine import Engine
from timetrial.proving.keeping import Keeping


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TIMETRIAL_CACHE", str(folder))
    monkeypatch.setenv("TIMETRIAL_KEEP_PROOFS", "yes")
    return folder


@pytest.fixture
def keeps(own_cache: Path, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine of fakes that keeps proofs; what decides one is the case alone."""

    def recipe(plan: Any, contender: Any) -> dict[str, Any]:
        return {"case": plan.case.training_content, "contender": contender.fingerprint}

    monkeypatch.setattr("timetrial.proving.keeping.may_be_kept", lambda plan: True)
    monkeypatch.setattr("timetrial.proving.keeping.recipe_of", recipe)
    monkeypatch.setattr("timetrial.proving.keeping._finds_compiled", lambda *_, **__: True)
    return dataclasses.replace(fake.engine(), keeper=Keeping())
