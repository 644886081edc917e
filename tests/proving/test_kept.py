"""A proof is kept from run to run, and counts as long as nothing that decides it has changed."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from fakes import FakeEngine
from launching import make_plan, small_network

from timetrial.contenders import resolve
from timetrial.errors import InputError
from timetrial.experiment.engine import Engine
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.hashing import file_hash
from timetrial.launch import LaunchPlan
from timetrial.progress import QuietProgress
from timetrial.proving import keeping, key
from timetrial.proving.keeper import Found
from timetrial.proving.keeping import Keeping, real_keeper
from timetrial.races import Race, run_race
from timetrial.records import store
from timetrial.records.files import mark_of
from timetrial.records.model import LaunchRecord, Library, Parity
from timetrial.records.same_libraries import other_libraries
from timetrial.report.detail import CaseDetail
from timetrial.report.race import notes
from timetrial.report.rendering import to_text
from timetrial.results.results import Results

WORDS = ("network=mlp", "backend=fast,slow", "threads=1,2", "launches=1")


def run(engine: Engine, results: Path, *words: str, **options: Any) -> Results:
    experiment = load_words([*(words or WORDS)], load_network=fakes.network)
    return run_experiment(experiment, results, quiet=True, engine=engine, **options)


def proven(fake: FakeEngine) -> int:
    return sum(plan.purpose == "proof" for plan in fake.log)


def test_a_second_run_proves_nothing(keeps: Engine, fake: FakeEngine, results_folder: Path) -> None:
    first = run(keeps, results_folder)
    assert proven(fake) == 2
    assert "kept" not in to_text(first)
    fake.log.clear()
    second = run(keeps, results_folder, *WORDS[:2], "threads=2", "launches=1")
    assert proven(fake) == 0
    assert [row.parity and row.parity.status for row in second.rows] == ["passed", "passed"]
    assert "2 proofs kept of earlier runs; --prove-again makes them anew" in to_text(second, width=200)
    for row in second.rows:
        record = row.proof_kept
        assert record is not None
        assert record.kept_from is not None
        assert (record.case, record.kept_from.run) == (row.case.id, first.experiment.id)
        assert record.kept_from.case != row.case.id, "it was proven with one thread"
        assert f"proven on 2026-01-01 in run {first.experiment.id}" in dict(CaseDetail(row).facts())["proof"]
    assert {case["proof_kept_from"] for case in second.to_json()["cases"]} == {first.experiment.id}
    assert all(plan.proof is not None and plan.kept is not None for plan in fake.log)


def test_prove_again_proves_again_and_keeps_that(
    keeps: Engine, fake: FakeEngine, results_folder: Path
) -> None:
    run(keeps, results_folder)
    fake.log.clear()
    again = run(keeps, results_folder, prove_again=True)
    assert proven(fake) == 2
    assert all(row.proof_kept is None for row in again.rows)
    fake.log.clear()
    third = run(keeps, results_folder)
    assert proven(fake) == 0
    assert {case["proof_kept_from"] for case in third.to_json()["cases"]} == {again.experiment.id}


def test_a_race_takes_what_a_run_has_proven(keeps: Engine, fake: FakeEngine, results_folder: Path) -> None:
    run(keeps, results_folder)
    fake.log.clear()
    experiment = load_words(["network=mlp", "backend=fast,slow", "threads=1"], load_network=fakes.network)
    race = run_race(experiment, results_folder, quiet=True, engine=keeps)
    assert proven(fake) == 0
    assert "2 proofs kept of earlier runs" in "\n".join(notes(race))
    assert isinstance(race, Race)
    fake.log.clear()
    run_race(experiment, results_folder, quiet=True, engine=keeps, prove_again=True)
    assert proven(fake) == 2


class _Told(QuietProgress):
    """What was said, and how far each stage had come when the next one began."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.proofs = (0, 0)

    def next(self, words: str) -> None:
        self.words.append(words)

    def begin(self, stage: str, launches: int | None = None) -> None:
        if stage == "speed":
            self.proofs = (self.plan._current.ended, self.plan._current.launches)
        super().begin(stage, launches)


def test_whoever_watches_hears_of_it(
    keeps: Engine, fake: FakeEngine, results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[_Told] = []

    def progress(*, quiet: bool) -> QuietProgress:
        told.append(_Told())
        return told[-1]

    monkeypatch.setattr("timetrial.experiment.runner.progress", progress)
    for backends in ("fast", "fast,slow", "fast,slow"):
        run(keeps, results_folder, "network=mlp", f"backend={backends}", "threads=1,2", "launches=1")
    assert [one.proofs for one in told] == [(1, 1), (2, 2), (2, 2)]
    first, second, third = (one.words for one in told)
    assert not any("kept" in words for words in first)
    assert "1 proof kept of earlier runs" in second
    assert "2 proofs kept of earlier runs" in third
    shutil.rmtree(_entry(Path(os.environ["TIMETRIAL_CACHE"])))
    damaged = _entry(Path(os.environ["TIMETRIAL_CACHE"])) / "record.json"
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes().replace(b"reference", b"ecnerefer"))
    run(keeps, results_folder, "network=mlp", "backend=fast,slow", "threads=1,2", "launches=1")
    assert any("proven anew" in words and "what was kept is damaged" in words for words in told[-1].words)
    assert told[-1].proofs == (2, 2)


@pytest.mark.parametrize("status", ["failed", "unproven"])
def test_only_what_passed_is_kept(keeps: Engine, fake: FakeEngine, results_folder: Path, status: Any) -> None:
    fake.parity["fast"] = Parity(status=status)
    for _ in range(2):
        run(keeps, results_folder, "network=mlp", "backend=fast,wrong", "threads=1", "launches=1")
    assert proven(fake) == 4


def test_without_a_keeper_nothing_is_kept(own_cache: Path, fake: FakeEngine, results_folder: Path) -> None:
    for _ in range(2):
        run(fake.engine(), results_folder)
    assert proven(fake) == 4
    assert not (own_cache / "v1" / "proofs").exists()


# What decides a proof, of a backend that is there, whose launch is only pretended ----------------------


@pytest.fixture
def plan(own_cache: Path, tmp_path: Path) -> LaunchPlan:
    made = make_plan(tmp_path / "made", "eigen", network=small_network(tmp_path), purpose="proof")
    return dataclasses.replace(made, contender=resolve(made.case))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libopenblas.so"
    path.write_bytes(b"a BLAS")
    return path


@pytest.fixture
def record(plan: LaunchPlan, library: Path) -> LaunchRecord:
    """A proof that passed, in the plan's folder."""
    mapped = [Library(path=str(library), sha256=file_hash(library))]
    made = LaunchRecord(
        id="made", case=plan.case.id, purpose="proof", seed=1, block=0, position=0, outcome="ok",
        started_at="2026-01-01T00:00:00+00:00", duration_s=1.0, libraries=mapped,
        parity=Parity(status="passed", losses=[2.3]), files={"losses.bin": mark_of(bytes(8))},
    )  # fmt: skip
    plan.folder.mkdir()
    (plan.folder / "losses.bin").write_bytes(bytes(8))
    store.write_launch(plan.folder, made)
    return made


@pytest.fixture
def kept(plan: LaunchPlan, record: LaunchRecord) -> LaunchPlan:
    Keeping().keep(plan, record, "the run")
    return dataclasses.replace(plan, folder=plan.folder.with_name("found"))


def test_it_is_found(kept: LaunchPlan, record: LaunchRecord) -> None:
    found = Keeping().find(kept).record
    assert found is not None
    assert found.kept_from is not None
    assert (found.id, found.kept_from.run) == ("found", "the run")
    assert found.parity == record.parity
    assert store.read_launch(kept.folder) == found, "with its files"


@pytest.mark.parametrize("what", ["threads", "affinity", "nice", "malloc", "openmp.wait_policy"])
def test_what_changes_no_arithmetic_does_not_matter(kept: LaunchPlan, what: str) -> None:
    case = dataclasses.replace(kept.case, settings={what: "1"})
    assert Keeping().find(dataclasses.replace(kept, case=case)).record is not None


@pytest.mark.parametrize(
    "other",
    [
        lambda plan: dataclasses.replace(plan, seed=2),
        lambda plan: dataclasses.replace(plan, environment={"X": "1"}),
        lambda plan: dataclasses.replace(plan, case=dataclasses.replace(plan.case, task="gradient")),
        lambda plan: dataclasses.replace(
            plan, case=dataclasses.replace(plan.case, settings={"eigen.convolution": "winograd"})
        ),
        lambda plan: dataclasses.replace(
            plan, contender=dataclasses.replace(plan.contender, fingerprint="other")
        ),
        lambda plan: dataclasses.replace(
            plan, prepared=dataclasses.replace(plan.prepared, job={**plan.prepared.job, "batch_size": 1})
        ),
    ],
    ids=["seed", "environment", "task", "settings", "contender", "work"],
)
def test_what_decides_it_is_in_its_key(kept: LaunchPlan, other: Callable[[LaunchPlan], LaunchPlan]) -> None:
    assert Keeping().find(other(kept)) == Found()


@pytest.mark.parametrize("what", ["code_hash", "judge_fingerprint", "model_and_flags", "digest_of_packages"])
def test_so_are_code_judges_and_processor(
    kept: LaunchPlan, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(key, what, lambda *_: "other")
    assert Keeping().find(kept) == Found()


def test_the_code_hash_is_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "module.py").write_text("x = 1")
    monkeypatch.setattr(key, "PACKAGE", tmp_path)
    before = key.code_hash.__wrapped__()
    assert key.code_hash.__wrapped__() == before
    (tmp_path / "one" / "module.py").write_text("x = 2")
    assert key.code_hash.__wrapped__() != before


def test_a_library_that_changed_since_is_proven_anew(kept: LaunchPlan, library: Path) -> None:
    library.write_bytes(b"another BLAS")
    assert Keeping().find(kept) == Found(why=f"{library} changed")
    assert not kept.folder.exists()
    assert Keeping().find(kept) == Found(), "it is gone"


def test_a_library_that_went_is_proven_anew(kept: LaunchPlan, library: Path) -> None:
    library.unlink()
    assert Keeping().find(kept) == Found(why=f"{library} is gone")


def _entry(cache: Path, place: int = 0) -> Path:
    return sorted(one for one in (cache / "v1" / "proofs").iterdir() if (one / "entry.json").is_file())[place]


@pytest.mark.parametrize("name", ["record.json", "losses.bin", "kept.json", "entry.json"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1]"])
def test_what_is_damaged_is_proven_anew(
    kept: LaunchPlan, record: LaunchRecord, own_cache: Path, name: str, content: bytes | None
) -> None:
    file = _entry(own_cache) / name
    file.chmod(0o644)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    assert Keeping().find(kept).record is None
    assert not kept.folder.exists()
    Keeping().keep(dataclasses.replace(kept, folder=kept.folder.with_name("made")), record, "a later run")
    found = Keeping().find(kept).record
    assert found is not None
    assert found.kept_from is not None
    assert found.kept_from.run == "a later run"


def test_a_word_that_was_changed_is_seen(kept: LaunchPlan, own_cache: Path) -> None:
    file = _entry(own_cache) / "record.json"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b"2.3", b"2.4"))
    assert Keeping().find(kept) == Found(why=keeping.DAMAGED)


def test_who_was_not_used_for_longest_goes(
    kept: LaunchPlan, record: LaunchRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LIMIT_BYTES", 1)
    later = dataclasses.replace(kept, folder=kept.folder.with_name("made"), seed=2)
    Keeping().keep(later, record, "a later run")
    assert Keeping().find(kept) == Found()
    assert Keeping().find(dataclasses.replace(later, folder=kept.folder)).record is not None


def test_who_comes_second_leaves_the_first(kept: LaunchPlan, record: LaunchRecord) -> None:
    made = dataclasses.replace(kept, folder=kept.folder.with_name("made"))
    Keeping().keep(made, record, "a later run")
    found = Keeping().find(kept).record
    assert found is not None
    assert found.kept_from is not None
    assert found.kept_from.run == "the run"


def test_a_cache_that_takes_nothing_ends_no_run(
    plan: LaunchPlan, record: LaunchRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "file"))
    Keeping().keep(plan, record, "the run")
    assert Keeping().find(plan) == Found()


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "callable"},
        {"flags": ("unprovable",)},
        {"user_path": Path("/opt/own")},
        {"kind": "framework", "path": Path("/home/somebody/framework/adapter.py")},
    ],
    ids=["callable", "unprovable", "user's own install", "adapter of somebody's own"],
)
def test_whose_files_nobody_knows_is_never_kept(
    plan: LaunchPlan, record: LaunchRecord, own_cache: Path, changes: dict[str, Any]
) -> None:
    assert plan.contender is not None
    other = dataclasses.replace(plan, contender=dataclasses.replace(plan.contender, **changes))
    Keeping().keep(other, record, "the run")
    assert not (own_cache / "v1" / "proofs").exists()


@pytest.mark.parametrize("backend", ["./own.so", "own.so", "folder/of/adapter"])
def test_a_backend_by_its_path_is_never_kept(plan: LaunchPlan, backend: str) -> None:
    assert key.may_be_kept(plan)
    assert not key.may_be_kept(
        dataclasses.replace(plan, case=dataclasses.replace(plan.case, backend=backend))
    )


def test_layers_of_ones_own_are_never_kept(plan: LaunchPlan) -> None:
    own: Any = SimpleNamespace(has_own_kinds=True)
    assert not key.may_be_kept(
        dataclasses.replace(plan, prepared=dataclasses.replace(plan.prepared, network=own))
    )


def test_a_switch_keeps_none(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(real_keeper(), Keeping)
    monkeypatch.setenv("TIMETRIAL_KEEP_PROOFS", "no")
    assert not isinstance(real_keeper(), Keeping)
    monkeypatch.setenv("TIMETRIAL_KEEP_PROOFS", "perhaps")
    with pytest.raises(InputError, match=r"TIMETRIAL_KEEP_PROOFS is 'perhaps'; expected yes .* or no"):
        real_keeper()


# What launches have mapped ------------------------------------------------------------------------------


def _mapped(**files: str) -> list[Library]:
    return [Library(path=f"/usr/lib/{name}.so", sha256=sha256) for name, sha256 in files.items()]


def test_a_launch_with_the_same_files_is_what_was_proven() -> None:
    proof = _mapped(libopenblas="aa", libgomp="bb")
    assert other_libraries(proof, proof) is None
    assert other_libraries(proof[:1], proof) is None
    assert other_libraries([Library(path="/elsewhere/libgomp.so", sha256="bb")], proof) is None
    assert other_libraries([*proof, *_mapped(libjemalloc="cc")], proof) is None, "it only allocates"


def test_a_launch_with_other_files_is_not() -> None:
    proof = _mapped(libopenblas="aa")
    assert other_libraries(_mapped(libopenblas="cc"), proof) == (
        "computes with another libopenblas.so than the kept proof (sha256 cc, was aa)"
    )
    more = _mapped(libopenblas="aa", libdnnl="dd")
    for other_threads in (False, True):
        said = other_libraries(more, proof, more=other_threads)
        assert said == "computes with libdnnl.so, which the kept proof had not"
    more = _mapped(libopenblas="aa", libgomp="dd")
    assert other_libraries(more, proof) == "computes with libgomp.so, which the kept proof had not"
    assert other_libraries(more, proof, more=True) is None, "other threads may need it"
    assert other_libraries(_mapped(libopenblas="cc"), proof, more=True) is not None
