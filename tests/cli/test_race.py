"""`timetrial race`: its options, and running a race again from its folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from typer.testing import CliRunner, Result

from timetrial.cli.main import app
from timetrial.errors import MeasurementError

SIDES = ("network=mlp", "backend=fast,fast", "threads=1")


@pytest.fixture
def call(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `timetrial race WORDS` in an empty folder, with scripted contenders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("timetrial.races.racing.real_engine", fake.engine)
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["race", *words])

    return call


def folder_of(done: Result) -> Path:
    return Path(json.loads(done.stdout)["records"])


def test_again_is_the_same_race(call: Any) -> None:
    options = "--metric peak_memory --min-effect 0.1 --equivalence 0.2 --no-confirm --isolated"
    done = call(*SIDES, *options.split(), "--json")
    document = json.loads(done.stdout)
    assert document["again"] == f"timetrial race network=mlp backend=fast,fast threads=1 seed=1 {options}"
    repeated = call(*document["again"].split()[2:], "--json")
    before, after = (json.loads((folder_of(one) / "race.json").read_text()) for one in (done, repeated))
    assert {key: before[key] for key in ("metric", "rule", "confirm", "isolated")} == {
        key: after[key] for key in ("metric", "rule", "confirm", "isolated")
    }
    usual = json.loads(call(*SIDES, "--json").stdout)["again"]
    assert usual == "timetrial race network=mlp backend=fast,fast threads=1 seed=1"


def test_a_folder_brings_its_options_along(call: Any) -> None:
    first = folder_of(
        call(*SIDES, "--metric", "peak_memory", "--min-effect", "0.1", "--no-confirm", "--json")
    )
    again = call(str(first), "--json")
    record = json.loads((folder_of(again) / "race.json").read_text())
    assert (record["metric"], record["rule"]["min_effect"]) == ("peak_memory", 0.1)
    assert (record["confirm"], record["isolated"]) == (False, False)
    # What is given goes before what was.
    other = call(str(first), "--metric", "step_time", "--confirm", "--json")
    record = json.loads((folder_of(other) / "race.json").read_text())
    assert (record["metric"], record["rule"]["min_effect"], record["confirm"]) == ("step_time", 0.1, True)


def test_what_was_made_in_python_is_raced_again_by_its_folder(
    call: Any, fake: FakeEngine, tmp_path: Path
) -> None:
    from timetrial.races import race

    folder = tmp_path / "results"
    found = race("fast", "fast", network="mlp", threads=1, results=folder, isolated=True, quiet=True)
    assert found.again == f"timetrial race results/{found.folder.name}"
    assert f"records     results/{found.folder.name}" in found.explain()
    again = folder_of(call(*found.again.split()[2:], "--json"))
    assert json.loads((again / "race.json").read_text())["isolated"] is True


def test_what_could_not_be_measured_is_no_verdict(call: Any, fake: FakeEngine) -> None:
    def fails(plan: Any) -> None:
        raise MeasurementError("no room for a record")

    fake.before = fails
    done = call(*SIDES)
    assert done.exit_code == 4
    assert "no room for a record" in done.stderr


def test_a_dry_run_says_who_and_how_long(
    call: Any, fake: FakeEngine, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("timetrial.experiment.engine.real_engine", fake.engine)
    done = call("network=mlp", "backend=fast,slow,absent", "threads=1", "--dry-run")
    assert done.exit_code == 0
    first, unavailable, pair, *when = done.stdout.splitlines()
    assert first == "slow, absent against fast: 2 of 3 sides can be raced here."
    assert unavailable.startswith("unavailable: absent: ")
    assert re.fullmatch(r"A pair takes about .+ by 3\.0 %: typical, no earlier race here tells\.", pair)
    assert [line.split("  ")[0] for line in when] == ["the same", "10 % apart", "undecided"]
    assert when[1].endswith("confirmation included")
    assert not fake.log
    assert not (tmp_path / "results").exists()
    facts = json.loads(call(*SIDES, "--dry-run", "--no-confirm", "--json").stdout)
    assert (facts["sides"], facts["plain_pairs"], facts["most_pairs"]) == (2, 6, 24)
    assert facts["budget_pairs"] is None
    assert 0 < facts["plain_s"] < facts["same_s"] < facts["most_s"]
    with_second = json.loads(call(*SIDES, "--dry-run", "--json", "--budget", "2m").stdout)
    assert with_second["most_s"] > 1.5 * facts["most_s"]
    assert with_second["budget_pairs"] >= 1
    more = json.loads(call(*SIDES, "--dry-run", "--json", "--most-pairs", "40").stdout)
    assert more["most_pairs"] == 40


@pytest.mark.attempt
def test_a_dry_run_refuses_what_a_race_refuses(call: Any) -> None:
    done = call("network=mlp", "backend=fast", "threads=1", "--dry-run")
    assert done.exit_code == 2
    assert "A race needs two sides" in done.stderr
    assert "--resume" in call("--resume", "last", "--dry-run").stderr
