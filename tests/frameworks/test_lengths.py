"""Every framework that has several ways through sequences of unequal lengths, on every one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT, make_plan, words
from required import framework_skip
from sequence_networks import directed, gated, plain, texts

from timetrial.environments import shipped_frameworks
from timetrial.environments.locate import locate
from timetrial.errors import Unavailable
from timetrial.launch import Limits
from timetrial.launch.run import run_launch

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("compiled_once")]


def everything() -> list[Any]:
    """Version and way; one that is not installed is skipped, with the cure."""
    found = []
    for framework in shipped_frameworks().values():
        for version in framework.versions:
            table = version.settings.get("lengths")
            name = f"{framework.name}@{version.version}"
            marks = []
            try:
                locate(framework, version.version, None)
            except Unavailable as reason:
                marks = [pytest.mark.skip(reason=framework_skip(name, reason))]
            found += [pytest.param(name, way, marks=marks) for way in (table.values if table else ())]
    return found


@pytest.mark.parametrize(
    "text",
    [texts(2), gated(), plain(2), directed(texts())],
    ids=["lstm", "gru", "rnn", "bidirectional"],
)
@pytest.mark.parametrize(("backend", "way"), everything())
def test_a_way_is_proven(tmp_path: Path, backend: str, way: str, text: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text, encoding="utf-8")
    record = run_launch(
        make_plan(
            tmp_path / "launch",
            backend,
            network=str(own),
            dataset="synthetic-sentences@20",
            batch_size=6,
            settings={"threads": "1", "lengths": way},
            purpose="proof",
            measure=replace(SHORT, limits=Limits()),  # Theano compiles for a minute
        )
    )
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed", record.parity
    reading = next(one for one in record.settings if one.name == "lengths")
    assert (reading.effective, reading.status) == (way, "applied")
    says = {
        "padded": "all 20 steps",
        "rounded": "rounded up to eighths of 20",
        "trimmed": "as the longest of its batch",
        "packed": "that count",
    }
    assert says[way] in record.facts["one forward"]
