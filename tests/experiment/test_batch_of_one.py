"""Batch normalization over one value has no variance: said before anything starts, of tasks that learn."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import workload
from own_networks import NORMALIZED

from timetrial.cases.case import Case
from timetrial.cases.cases import PlannedCase
from timetrial.errors import InputError
from timetrial.experiment.engine import real_engine
from timetrial.experiment.validate import validate

pytestmark = pytest.mark.attempt


def checked(folder: Path, task: str, batch_size: int) -> None:
    network = folder / "normalized.toml"
    network.write_text(NORMALIZED)
    case = Case("eigen", workload(str(network), batch_size=batch_size), task=task)
    validate([PlannedCase(case)], real_engine())


@pytest.mark.parametrize("task", ["train", "gradient"])
def test_it_does_not_learn_from_one_sample(tmp_path: Path, task: str) -> None:
    with pytest.raises(InputError) as refused:
        checked(tmp_path, task, 1)
    assert "layer 'norm3' (batch_norm) would train on one value per feature" in str(refused.value)
    assert "take a batch_size of 2 or more" in str(refused.value)


def test_it_learns_from_two_and_infers_of_one(tmp_path: Path) -> None:
    checked(tmp_path, "train", 2)
    checked(tmp_path, "forward", 1)
