"""Which kernels onednn chose by trial is kept by the first timed launch, and read by all that follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from launching import make_plan, small_network, words

from timetrial.cases.case import Case
from timetrial.contenders import resolve
from timetrial.contenders.compile_cache import as_said, finds_compiled, starts_alone
from timetrial.errors import TimetrialError
from timetrial.launch import run_launch
from timetrial.launch.job import make_job
from timetrial.processes.events import Reading
from timetrial.records.model import CompileCache, LaunchRecord


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    try:
        resolve(Case("onednn", make_plan(tmp_path / "plan", "null").case.workload))
    except TimetrialError as error:
        pytest.skip(f"onednn is not here: {error}")


def launch(tmp_path: Path, name: str, purpose: str = "speed", **more: Any) -> LaunchRecord:
    settings = {"threads": "1", **more.pop("settings", {})}
    plan = make_plan(
        tmp_path / name, "onednn", network=small_network(tmp_path), purpose=purpose, settings=settings, **more
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    return record


def state(record: LaunchRecord) -> tuple[str, str]:
    """Of its folder, and the first word of what onednn says of its trials."""
    assert record.compile_cache is not None
    return record.compile_cache.state, record.facts["trials"].partition(":")[0]


def kernels(record: LaunchRecord) -> dict[str, str]:
    return {name: value for name, value in record.facts.items() if name != "trials"}


def file_of(record: LaunchRecord) -> Path:
    assert record.compile_cache is not None
    assert record.compile_cache.path is not None
    (file,) = Path(record.compile_cache.path).iterdir()
    return file


TRIED, KEPT = ("cold", "tried"), ("warm", "kept")


def test_the_first_timed_launch_tries_and_all_others_read(tmp_path: Path) -> None:
    assert state(launch(tmp_path, "alone")) == TRIED  # no proof has made a place for it
    assert state(launch(tmp_path, "again")) == TRIED
    proof = launch(tmp_path, "proof", "proof")
    assert state(proof) == TRIED
    # Nothing of a proof's trial is kept, which others may have disturbed, nor of one with others beside it.
    assert state(launch(tmp_path, "learning", "learning")) == TRIED
    assert state(launch(tmp_path, "beside", at_once=2)) == TRIED
    first = launch(tmp_path, "first")
    assert state(first) == TRIED
    assert first.facts["trials"].endswith("kept for those that follow")
    for name, purpose in (("second", "speed"), ("late", "learning"), ("layers", "profile")):
        later = launch(tmp_path, name, purpose)
        assert state(later) == KEPT
        assert kernels(later) == kernels(first)
    assert state(launch(tmp_path, "seed", seed=2)) == KEPT  # other values of the same shapes
    launch(tmp_path, "anew", "proof")
    assert state(launch(tmp_path, "after")) == TRIED


def test_the_launches_of_a_proof_share_a_choice(tmp_path: Path) -> None:
    """The second one takes its steps with the proof's own recipe."""
    proof = launch(tmp_path, "proof", "proof")
    file = file_of(proof)
    assert file.parent.name == "proof"
    assert len(list(file.parent.iterdir())) == 1  # the stress launch would have another, if it were another


def test_a_damaged_file_is_tried_again_and_the_record_says_so(tmp_path: Path) -> None:
    launch(tmp_path, "proof", "proof")
    file = file_of(launch(tmp_path, "first"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert state(launch(tmp_path, "damaged")) == TRIED
    assert state(launch(tmp_path, "next")) == KEPT


def test_other_settings_have_choices_of_their_own(tmp_path: Path) -> None:
    launch(tmp_path, "proof", "proof")
    launch(tmp_path, "first")
    assert state(launch(tmp_path, "second")) == KEPT
    for number, settings in enumerate(({"threads": "2"}, {"nice": "5"}, {"convolution": "auto"})):
        assert state(launch(tmp_path, f"other{number}", settings=settings)) == TRIED
    assert state(launch(tmp_path, "batch", batch_size=8)) == TRIED


def test_a_proof_of_other_threads_serves_too(tmp_path: Path) -> None:
    """It leaves nothing but a place, which is made now."""
    plan = make_plan(
        tmp_path / "plan", "onednn", network=small_network(tmp_path), settings={"threads": "1", "nice": "3"}
    )
    contender = resolve(plan.case)
    assert finds_compiled(plan.case, make_job(plan, contender), contender, compiles_nothing=False)
    assert state(launch(tmp_path, "first", settings={"nice": "3"})) == TRIED
    assert state(launch(tmp_path, "second", settings={"nice": "3"})) == KEPT


def test_cold_as_a_setting(tmp_path: Path) -> None:
    launch(tmp_path, "proof", "proof")
    launch(tmp_path, "first")
    for name in ("one", "two"):
        record = launch(tmp_path, name, settings={"cache": "cold"})
        assert state(record) == TRIED
        (setting,) = (one for one in record.settings if one.name == "cache")
        assert (setting.effective, setting.status) == ("cold", "applied")


def test_the_contenders_word_counts() -> None:
    warm = CompileCache(state="warm", path="/there")
    said = {"cache": Reading(effective="cold", how_read="onednn: tried")}
    assert as_said(warm, said) == CompileCache(state="cold", path="/there")
    assert as_said(warm, {}) == warm
    assert as_said(CompileCache(state="none"), said).state == "none"


def test_who_starts_alone() -> None:
    assert starts_alone("speed", 1)
    assert starts_alone("race", 1)
    assert not starts_alone("race", 2)
    assert not starts_alone("proof", 1)  # others are judged meanwhile
    assert not starts_alone("learning", 1)
