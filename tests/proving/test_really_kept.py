"""The same of a backend that computes: a real proof, kept, found, and held against what is timed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from launching import make_plan, small_network, words

from timetrial.contenders import resolve
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.runner import check_experiment
from timetrial.launch import run_launch
from timetrial.launch.plan import KeptProof
from timetrial.records.model import Library
from timetrial.results.results import Results


def check(tmp_path: Path, threads: Any, **options: Any) -> Results:
    document = {
        "name": "kept",
        "workload": {"network": small_network(tmp_path), "dataset": "synthetic", "batch_size": 16},
        "axes": {"backend": "eigen", "threads": threads},
    }
    return check_experiment(Experiment.from_dict(document), tmp_path / "results", quiet=True, **options)


def kept_from(results: Results) -> set[str | None]:
    return {case["proof_kept_from"] for case in results.to_json()["cases"]}


def test_kept_found_and_made_anew(own_cache: Path, tmp_path: Path) -> None:
    first = check(tmp_path, [1, 2])
    assert len(list((first.path / "proof").iterdir())) == 1
    assert [row.parity and row.parity.status for row in first.rows] == ["passed", "passed"]
    second = check(tmp_path, [2])
    assert kept_from(second) == {first.experiment.id}
    assert [row.parity for row in second.rows] == [first.rows[0].parity]
    again = check(tmp_path, [2], prove_again=True)
    assert kept_from(again) == {None}
    (entry,) = (own_cache / "v1" / "proofs").iterdir()
    facts = json.loads((entry / "kept.json").read_text())
    assert facts["run"] == again.experiment.id


def test_a_launch_with_other_libraries_than_its_kept_proof_is_wrong(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "first", "eigen", network=small_network(tmp_path))
    plan = dataclasses.replace(plan, contender=resolve(plan.case))
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert record.libraries
    same = KeptProof(record.libraries)
    again = run_launch(dataclasses.replace(plan, folder=tmp_path / "again", kept=same))
    assert again.outcome == "ok", words(again)
    one, *others = record.libraries
    changed = [Library(path=one.path, sha256="0" * 64), *others]
    other = run_launch(dataclasses.replace(plan, folder=tmp_path / "other", kept=KeptProof(changed)))
    assert other.outcome == "wrong", words(other)
    assert f"computes with another {Path(one.path).name} than the kept proof" in str(other.reason)
    assert "--prove-again" in str(other.reason)
