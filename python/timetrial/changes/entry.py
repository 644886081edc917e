"""A line of a history file: one number that was measured, with what must be known to compare it with another.

| field | meaning |
|---|---|
| `schema_version` | 1 |
| `when` | when it was measured, ISO 8601 with its offset |
| `source` | `run`, `race` or `pytest` |
| `name` | what was measured: everything that was asked of a case, or pytest's id of the test and its sides |
| `metric`, `unit`, `direction` | `step_time`, `samples_per_s`, `peak_memory` or `accuracy`; `ns`, `1/s`, `bytes` or `1`; which values are good, `lower` or `higher` |
| `against` | of a ratio (unit `1`), the name of what it is to; null: the value itself |
| `estimate`, `low`, `high`, `confidence` | the number and its interval; null where it has none |
| `outcome` | `ok`, or what failed: then there is no number |
| `verdict`, `status` | of a race; of an assertion in pytest |
| `proven` | whether it was shown to compute what it should; null: unknown |
| `record` | id of the record |
| `commit`, `modified` | of the git repository of the working directory when the line was written, and whether it had changes that are in no commit; null: there is none |
| `code` | a hash of the user's own step, where it has one: code may change from line to line, that is what is followed |
| `machine`, `machine_id` | what decides about times, and a hash of it. Machines that are alike in all of it count as one |
| `environment`, `environment_id` | versions, settings in force, kernel and Python, and a hash of them |
| `timetrial_version` | that measured it |
"""  # noqa: E501 - a table

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat

from timetrial.cases.keys import is_callable_word
from timetrial.changes.facts import BACKEND, SOURCE, digest, machine_of, stands_on, state_of
from timetrial.changes.findings import Finding, findings_of, record_of
from timetrial.records.metric import METRICS
from timetrial.results.names import names_of
from timetrial.results.results import Results
from timetrial.statistics.intervals import CONFIDENCE, Estimate

if TYPE_CHECKING:
    from timetrial.records.model import ExperimentRecord
    from timetrial.results.race import Race

SCHEMA_VERSION = 1
_GIT_S = 10.0
# Another draw of weights, or more launches, is no other environment.
_NO_PLACE = ("seed", "measure.effort", "measure.launches")


class Entry(BaseModel):
    """One line. Fields that a newer timetrial may add are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: Literal[1] = 1
    when: AwareDatetime
    source: Literal["run", "race", "pytest"]
    name: str
    metric: str
    unit: str
    direction: Literal["lower", "higher"]
    against: str | None = None
    estimate: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    confidence: FiniteFloat = CONFIDENCE
    outcome: str | None = None
    verdict: str | None = None
    status: str | None = None
    proven: bool | None = None
    record: str
    commit: str | None = None
    modified: bool | None = None
    code: str | None = None
    machine: dict[str, str] = Field(default_factory=dict)
    machine_id: str
    environment: dict[str, str] = Field(default_factory=dict)
    environment_id: str
    timetrial_version: str

    @property
    def series(self) -> tuple[str, str, str | None]:
        """What a number may be put beside."""
        return self.name, self.metric, self.against

    @property
    def place(self) -> tuple[str, str]:
        """What must be equal for two numbers to be joined: machine and environment."""
        return self.machine_id, self.environment_id


def entries_of(found: Results | Race) -> list[Entry]:
    """Of every case of a run, selected cases only, or side of a race: its metric, and its ratio to what it
    was compared with."""
    record = record_of(found)
    names = names_of(record.cases)
    metric = "step_time" if isinstance(found, Results) else found.metric
    shared = {
        "source": "run" if isinstance(found, Results) else "race",
        "metric": metric,
        **commit_of(Path.cwd()),
    }
    entries = []
    for one in findings_of(found):
        own = {
            **shared, **place_of(record, one), "name": names[one.case.id], "outcome": one.outcome,
            "proven": one.proven, "direction": METRICS[metric].good,
        }  # fmt: skip
        entries.append(Entry(**own, unit=METRICS[metric].unit, **_numbers(one.level)))
        if one.against is not None:
            against = names[one.against.id]
            entries.append(
                Entry(**own, unit="1", against=against, verdict=one.verdict, **_numbers(one.ratio))
            )
    return entries


def place_of(record: ExperimentRecord, one: Finding) -> dict[str, Any]:
    """When, where and on what a row was measured: fields of its line."""
    machine = machine_of(record)
    environment = {**state_of(record), **stands_on(one.case, one.launches)}
    code = environment.pop(SOURCE, None)
    if is_callable_word(one.case.backend):  # the version of the user's own package: what is followed
        environment.pop(BACKEND, None)
    environment = {key: value for key, value in environment.items() if key not in _NO_PLACE}
    return {
        "when": record.created_at,
        "record": record.id,
        "machine": machine,
        "machine_id": digest(machine),
        "environment": environment,
        "environment_id": digest(environment),
        "code": code,
        "timetrial_version": record.timetrial_version,
    }


def commit_of(folder: Path) -> dict[str, Any]:
    """The commit that is checked out around a folder, and whether files differ from it."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "modified": None}
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "modified": None if changed is None else bool(changed)}


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None: there is no git, no repository, or no answer in time."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=_GIT_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def _numbers(found: Estimate | None) -> Mapping[str, Any]:
    return {} if found is None else {"estimate": found.estimate, "low": found.low, "high": found.high}
