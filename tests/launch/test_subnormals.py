"""Subnormal numbers are counted where they are, and named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, words

from timetrial.agreement import passes
from timetrial.launch import run_launch
from timetrial.observing.subnormals import subnormals

SMALLEST = np.finfo(np.float32).smallest_normal
PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


def test_only_subnormals_count() -> None:
    values = np.array(
        [0, -0.0, 1, SMALLEST, -SMALLEST, SMALLEST / 2, -SMALLEST / 4, np.nan, np.inf], np.float32
    )
    assert subnormals(values) == 2
    assert subnormals(values.astype(np.float64)) == 0  # there they are normal numbers
    assert subnormals(np.array([0, 1, 2])) == 0


def test_velocities_that_decay_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Momentum 0.1 takes a velocity of a dead unit below 1e-38 in some 35 steps."""
    measure = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=60)

    def launch(name: str) -> dict[str, int]:
        record = run_launch(
            make_plan(
                tmp_path / name, "eigen", momentum=0.1, learning_rate=0.5, dataset="digits28", measure=measure
            )
        )
        assert record.outcome == "ok", words(record)
        assert record.subnormals is not None
        return {one.tensor: one.count for one in record.subnormals}

    repeated = launch("repeated")
    monkeypatch.setattr(passes, "DECADES", 1e9)
    on_and_on = launch("on-and-on")
    assert any(name.endswith(".velocity") for name in on_and_on), on_and_on
    assert sum(repeated.values()) < sum(on_and_on.values())
    assert not list(tmp_path.glob("*/last-*"))
