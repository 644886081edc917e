"""A BLAS in the place of the one inside Caffe: whoever answers is named, and computes the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words
from required import framework_skip

from timetrial.environments import READY, find_framework, state_of
from timetrial.errors import TimetrialError
from timetrial.launch import run_launch
from timetrial.library_files import find

NAME = "caffe@1.0.0"


@pytest.mark.full
@pytest.mark.parametrize("library", ["openblas-pthread", "blis-serial", "reference"])
def test_a_blas_stands_in_for_the_one_inside(tmp_path: Path, library: str) -> None:
    framework, version = find_framework(NAME)
    assert version is not None
    state = state_of(framework, version)
    if state.state not in READY:
        pytest.skip(framework_skip(NAME, state.detail))
    try:
        wanted = find(library, "blas").resolve()
    except TimetrialError as error:
        pytest.skip(f"machine: {error}")
    asked = {"threads": "1", "blas.library": library}
    record = run_launch(make_plan(tmp_path, NAME, network="mlp", purpose="proof", settings=asked))
    assert record.outcome == "ok", words(record)
    (blas,) = (one for one in record.settings if one.name == "blas.library")
    assert (Path(blas.effective or "").resolve(), blas.status) == (wanted, "applied")
    assert "dladdr" in blas.how_read
